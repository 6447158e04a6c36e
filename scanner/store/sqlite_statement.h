#pragma once

#include <SQLiteCpp/Database.h>
#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace spoor::scanner {

// A prepared statement that is run for each directory. SQLiteCpp's class counts references and looks up names
// for each column of each row, which takes longer than SQLite itself. Failures are SQLite::Exception, too.
//
// Not thread-safe.
class SqliteStatement {
 public:
  // `database` must outlive it.
  SqliteStatement(SQLite::Database& database, const std::string& text);

  // One use: resets the statement at the end and clears its bindings, so that it keeps no pointers to them.
  class Use {
   public:
    explicit Use(SqliteStatement& statement) : statement_(statement) {}
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    ~Use() { statement_.reset(); }

   private:
    SqliteStatement& statement_;
  };

  // Makes it ready for the next use. Errors of the last use were thrown already.
  void reset();

  // Parameters count from 1. A blob must stay valid until the reset.
  void bind(int index, std::int64_t value) { check(sqlite3_bind_int64(statement_.get(), index, value)); }
  void bind_blob(int index, std::string_view value);

  // Whether there is a row.
  bool step();
  // Runs a statement without result rows. Returns the number of changed rows.
  std::uint64_t run();

  // Columns of the row count from 0. A blob is valid until the next step.
  std::int64_t number(int index) const { return sqlite3_column_int64(statement_.get(), index); }
  std::string_view blob(int index) const;

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  void check(int code) const {
    if (code != SQLITE_OK) fail(code);
  }
  [[noreturn]] void fail(int code) const;

  sqlite3* database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

}  // namespace spoor::scanner
