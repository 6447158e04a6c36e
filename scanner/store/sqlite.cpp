#include "scanner/store/sqlite.h"

#include <SQLiteCpp/Column.h>
#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/printable.h"
#include "scanner/errors.h"
#include "scanner/store/database_files.h"

namespace spoor::scanner {
namespace {

// A null pointer would bind NULL instead of an empty value.
const char* bytes_of(std::string_view value) { return value.empty() ? "" : value.data(); }

// SQLite reports a full disk as an I/O error unless it writes to the database itself.
std::string advice(int code, const std::filesystem::path& file) {
  const bool may_be_full = code == SQLITE_IOERR || code == SQLITE_CANTOPEN;
  if (code == SQLITE_FULL || (may_be_full && is_disk_full(file))) {
    return fmt::format("; too little space left in {}: free some space",
                       base::printable(file.parent_path().native()));
  }
  return code == SQLITE_BUSY ? "; another program locked it for too long" : "";
}

}  // namespace

sqlite3_stmt* SqliteStatement::prepared() {
  if (statement_) return statement_.get();
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v3(database_, text_.c_str(), static_cast<int>(text_.size()),
                           SQLITE_PREPARE_PERSISTENT, &statement, nullptr));
  statement_.reset(statement);
  return statement;
}

void SqliteStatement::reset() {
  if (!statement_) return;
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
}

void SqliteStatement::bind(int index, std::string_view value) {
  check(sqlite3_bind_blob64(prepared(), index, bytes_of(value), value.size(), SQLITE_STATIC));
}

void SqliteStatement::bind(int index, SqliteText text) {
  const auto [value] = text;
  check(sqlite3_bind_text64(prepared(), index, bytes_of(value), value.size(), SQLITE_STATIC, SQLITE_UTF8));
}

bool SqliteStatement::step() {
  const int code = sqlite3_step(prepared());
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

void require_space(SQLite::Database& database) {
  constexpr std::uint64_t growth_max = std::uint64_t{1} << 20U;  // less needs no look at the free space
  const int flushed = sqlite3_db_cacheflush(database.getHandle());
  if (flushed != SQLITE_OK) throw SQLite::Exception(database.getHandle(), flushed);
  const auto page_bytes = static_cast<std::uint64_t>(database.execAndGet("PRAGMA page_size").getInt64());
  const auto pages = static_cast<std::uint64_t>(database.execAndGet("PRAGMA page_count").getInt64());
  std::error_code failure;
  const std::uint64_t present = std::filesystem::file_size(database.getFilename(), failure);
  if (failure || pages * page_bytes < present + growth_max) return;
  if (!has_space_for(database.getFilename(), pages * page_bytes - present))
    throw SQLite::Exception("the file cannot grow", SQLITE_FULL);
}

base::Error database_error(std::string_view what, std::string_view file, const SQLite::Exception& exception) {
  const int code = exception.getErrorCode() & 0xff;
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return damage_error(file, fmt::format("cannot {}: {}", what, exception.what()));
  }
  return {Errc::database_failed, fmt::format("cannot {} in the scan database {}: {}{}", what, file,
                                             exception.what(), advice(code, file))};
}

}  // namespace spoor::scanner
