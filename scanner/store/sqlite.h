// SQLite as the scanner uses it: prepared statements, and failures as error values.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Exception.h>
#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace spoor::scanner {

// A string that is bound as text. Others are bound as blobs, which never equal a text.
struct SqliteText {
  std::string_view value;
};

// A prepared statement: it is prepared when it is first used. SQLiteCpp's class counts references and looks
// up names for each column of each row, which takes longer than SQLite itself. Failures are
// SQLite::Exception, too.
//
// Not thread-safe.
class SqliteStatement {
 public:
  // `database` must outlive it. Binds the values to the parameters, in order.
  template <class... Values>
  SqliteStatement(SQLite::Database& database, std::string text, const Values&... values)
      : database_(database.getHandle()), text_(std::move(text)) {
    bind_all(values...);
  }

  // One use with these values: resets the statement at the end and clears its bindings, so that it keeps no
  // pointers to them.
  class Use {
   public:
    template <class... Values>
    explicit Use(SqliteStatement& statement, const Values&... values) : Use(&statement) {
      statement.bind_all(values...);
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { statement_->reset(); }

   private:
    explicit Use(SqliteStatement* statement) : statement_(statement) {}

    SqliteStatement* statement_;
  };

  // Makes it ready for the next use. Errors of the last use were thrown already.
  void reset();

  // Parameters count from 1. A string must stay valid until the reset.
  void bind(int index, std::integral auto value) {
    check(sqlite3_bind_int64(prepared(), index, static_cast<std::int64_t>(value)));
  }
  void bind(int index, std::string_view value);
  void bind(int index, SqliteText text);
  void bind(int index, const char* value) = delete;  // SqliteText or a blob?

  // Whether there is a row.
  bool step();
  // Runs a statement without result rows. Returns the number of changed rows.
  std::uint64_t run();

  // Columns of the row count from 0. A blob is valid until the next step.
  template <class T = std::int64_t>
  T number(int index) const {
    return static_cast<T>(sqlite3_column_int64(statement_.get(), index));
  }
  std::string_view blob(int index) const;
  bool is_null(int index) const { return sqlite3_column_type(statement_.get(), index) == SQLITE_NULL; }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  sqlite3_stmt* prepared();

  template <class... Values>
  void bind_all(const Values&... values) {
    [[maybe_unused]] int index = 0;
    (bind(++index, values), ...);
  }

  void check(int code) const {
    if (code != SQLITE_OK) fail(code);
  }
  [[noreturn]] void fail(int code) const;

  sqlite3* database_;
  std::string text_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// `what` completes "cannot ... in the scan database FILE". Errc::database_failed or database_damaged.
base::Error database_error(std::string_view what, std::string_view file, const SQLite::Exception& exception);

// What the commit of the open transaction adds to the log must fit into the file, or the log can never be
// emptied, and leave space to the daemon: throws SQLite::Exception otherwise.
void require_space(SQLite::Database& database);

// Runs `action`, which may return a value, nothing, or a Result. Converts the exceptions of SQLite to errors.
template <class Action>
auto guarded(std::string_view what, std::string_view file, Action&& action) {
  using Returned = std::invoke_result_t<Action>;
  constexpr bool returns_result = requires(Returned returned) { returned.has_error(); };
  using Outcome = typename std::conditional_t<returns_result, std::type_identity<Returned>,
                                              std::type_identity<base::Result<Returned>>>::type;
  try {
    if constexpr (std::is_void_v<Returned>) {
      std::forward<Action>(action)();
      return Outcome();
    } else {
      return Outcome(std::forward<Action>(action)());
    }
  } catch (const SQLite::Exception& exception) {
    return Outcome(database_error(what, file, exception));
  }
}

// The type is exact: a database converts from the name of a file.
template <std::same_as<SQLite::Database> Database, class Action>
auto guarded(std::string_view what, const Database& database, Action&& action) {
  return guarded(what, database.getFilename(), std::forward<Action>(action));
}

}  // namespace spoor::scanner
