#include "scanner/store/sqlite_statement.h"

#include <SQLiteCpp/Exception.h>

namespace spoor::scanner {

SqliteStatement::SqliteStatement(SQLite::Database& database, const std::string& text)
    : database_(database.getHandle()) {
  sqlite3_stmt* prepared = nullptr;
  check(sqlite3_prepare_v3(database_, text.c_str(), static_cast<int>(text.size()), SQLITE_PREPARE_PERSISTENT,
                           &prepared, nullptr));
  statement_.reset(prepared);
}

void SqliteStatement::reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

void SqliteStatement::bind_blob(int index, std::string_view value) {
  // A null pointer would bind NULL instead of an empty blob.
  const char* const bytes = value.empty() ? "" : value.data();
  check(sqlite3_bind_blob64(statement_.get(), index, bytes, value.size(), SQLITE_STATIC));
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) fail(code);
  return false;
}

std::uint64_t SqliteStatement::run() {
  step();
  return static_cast<std::uint64_t>(sqlite3_changes64(database_));
}

std::string_view SqliteStatement::blob(int index) const {
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), index));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), index))};
}

void SqliteStatement::fail(int code) const { throw SQLite::Exception(database_, code); }

}  // namespace spoor::scanner
