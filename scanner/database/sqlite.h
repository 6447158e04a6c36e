// SQLite as the scanner uses it: connections, transactions, prepared statements, and failures as error
// values.
#pragma once

#include <sqlite3.h>

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace spoor::scanner {

inline constexpr int busy_timeout_ms = 10'000;  // of each connection, for other processes

class SqliteError : public std::runtime_error {
 public:
  SqliteError(const std::string& what, int code) : std::runtime_error(what), code_(code) {}
  // The last failure of the connection.
  SqliteError(sqlite3* connection, int code) : SqliteError(sqlite3_errmsg(connection), code) {}

  int code() const { return code_ & 0xff; }  // the primary one

 private:
  int code_;
};

// A connection to a database file. Failures are SqliteError.
//
// Not thread-safe.
class SqliteDatabase {
 public:
  // `flags`: those of sqlite3_open_v2(). Without a VFS, that of the system.
  SqliteDatabase(const std::filesystem::path& file, int flags, const char* vfs = nullptr);

  // Runs statements; ignores their results.
  void exec(const std::string& sql);
  // The first column of the first row, which there must be.
  std::int64_t number(const std::string& query);
  std::string text(const std::string& query);
  bool has_table(std::string_view name);
  void set_busy_timeout(int ms) { sqlite3_busy_timeout(handle(), ms); }

  sqlite3* handle() const { return handle_.get(); }
  const std::string& file() const { return file_; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };

  std::string file_;
  std::unique_ptr<sqlite3, Close> handle_;
};

// Is rolled back at its end unless it was committed. Failures are SqliteError.
class SqliteTransaction {
 public:
  enum class Kind { reading, writing };

  SqliteTransaction(SqliteDatabase& database, Kind kind) : database_(database) {
    database_.exec(kind == Kind::writing ? "BEGIN IMMEDIATE" : "BEGIN");
  }
  SqliteTransaction(const SqliteTransaction&) = delete;
  SqliteTransaction& operator=(const SqliteTransaction&) = delete;
  // SQLite may have rolled it back already.
  ~SqliteTransaction() {
    if (!is_over_) sqlite3_exec(database_.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }

  void commit() {
    database_.exec("COMMIT");
    is_over_ = true;
  }

 private:
  SqliteDatabase& database_;
  bool is_over_ = false;
};

// A string that is bound as text. Others are bound as blobs, which never equal a text.
struct SqliteText {
  std::string_view value;
};

// A prepared statement: it is prepared when it is first used. Failures are SqliteError.
//
// Not thread-safe.
class SqliteStatement {
 public:
  // `database` must outlive it. Binds the values to the parameters, in order.
  template <class... Values>
  SqliteStatement(SqliteDatabase& database, std::string text, const Values&... values)
      : database_(database.handle()), text_(std::move(text)) {
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

  // The functions below bind the values, in order, and reset the statement at the end.
  // Runs a statement without result rows. Returns the number of changed rows.
  template <class... Values>
  std::uint64_t run(const Values&... values) {
    const Use use(*this, values...);
    step();
    return static_cast<std::uint64_t>(sqlite3_changes64(database_));
  }
  template <class... Values>
  bool finds_row(const Values&... values) {
    const Use use(*this, values...);
    return step();
  }
  // The first column of the first row.
  template <class... Values>
  std::optional<std::int64_t> find_number(const Values&... values) {
    const Use use(*this, values...);
    return step() ? std::optional(number(0)) : std::nullopt;
  }
  // What `read` returns for the first row, or for each one.
  template <class Read, class... Values>
  auto find(Read&& read, const Values&... values) {
    const Use use(*this, values...);
    return step() ? std::optional(read(*this)) : std::nullopt;
  }
  template <class Read, class... Values>
  auto read_all(Read&& read, const Values&... values) {
    const Use use(*this, values...);
    std::vector<std::remove_cvref_t<std::invoke_result_t<Read, const SqliteStatement&>>> rows;
    while (step()) rows.push_back(read(*this));
    return rows;
  }

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

// Rows of the table `settings`. All throw SqliteError.
std::optional<std::string> find_setting(SqliteDatabase& database, std::string_view key);
std::int64_t number_setting(SqliteDatabase& database, std::string_view key, std::int64_t otherwise);
void put_setting(SqliteDatabase& database, std::string_view key, std::string_view value);
void erase_setting(SqliteDatabase& database, std::string_view key);

// `what` completes "cannot ... in the scan database FILE". Errc::database_failed or database_damaged.
base::Error database_error(std::string_view what, std::string_view file, const SqliteError& exception);

// What the commit of the open transaction adds to the log must fit into the file, or the log can never be
// emptied, and leave space to the daemon: throws SqliteError otherwise.
void require_space(SqliteDatabase& database);

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
  } catch (const SqliteError& exception) {
    return Outcome(database_error(what, file, exception));
  }
}

template <class Action>
auto guarded(std::string_view what, const SqliteDatabase& database, Action&& action) {
  return guarded(what, std::string_view(database.file()), std::forward<Action>(action));
}

}  // namespace spoor::scanner
