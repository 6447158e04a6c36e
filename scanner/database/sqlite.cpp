#include "scanner/database/sqlite.h"

#include <fmt/core.h>

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/printable.h"
#include "scanner/database/database_files.h"
#include "scanner/errors.h"

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

SqliteDatabase::SqliteDatabase(const std::filesystem::path& file, int flags, const char* vfs)
    : file_(file.native()) {
  sqlite3* handle = nullptr;
  const int code = sqlite3_open_v2(file_.c_str(), &handle, flags, vfs);
  handle_.reset(handle);
  if (code != SQLITE_OK) throw SqliteError(handle, code);
  set_busy_timeout(busy_timeout_ms);
}

void SqliteDatabase::exec(const std::string& sql) {
  const int code = sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) throw SqliteError(handle(), code);
}

std::int64_t SqliteDatabase::number(const std::string& query) {
  SqliteStatement statement(*this, query);
  if (!statement.step()) throw SqliteError("a query finds nothing", SQLITE_DONE);
  return statement.number(0);
}

std::string SqliteDatabase::text(const std::string& query) {
  SqliteStatement statement(*this, query);
  if (!statement.step()) throw SqliteError("a query finds nothing", SQLITE_DONE);
  return std::string(statement.blob(0));
}

bool SqliteDatabase::has_table(std::string_view name) {
  return SqliteStatement(*this, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?",
                         SqliteText{name})
      .step();
}

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

std::string_view SqliteStatement::blob(int index) const {
  const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), index));
  if (bytes == nullptr) return {};
  return {bytes, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), index))};
}

void SqliteStatement::fail(int code) const { throw SqliteError(database_, code); }

void require_space(SqliteDatabase& database) {
  constexpr std::uint64_t growth_max = std::uint64_t{1} << 20U;  // less needs no look at the free space
  const int flushed = sqlite3_db_cacheflush(database.handle());
  if (flushed != SQLITE_OK) throw SqliteError(database.handle(), flushed);
  const auto page_bytes = static_cast<std::uint64_t>(database.number("PRAGMA page_size"));
  const auto pages = static_cast<std::uint64_t>(database.number("PRAGMA page_count"));
  std::error_code failure;
  const std::uint64_t present = std::filesystem::file_size(database.file(), failure);
  if (failure || pages * page_bytes < present + growth_max) return;
  if (!has_space_for(database.file(), pages * page_bytes - present))
    throw SqliteError("the file cannot grow", SQLITE_FULL);
}

std::optional<std::string> find_setting(SqliteDatabase& database, std::string_view key) {
  SqliteStatement query(database, "SELECT value FROM settings WHERE key = ?", SqliteText{key});
  if (!query.step()) return std::nullopt;
  return std::string(query.blob(0));
}

std::int64_t number_setting(SqliteDatabase& database, std::string_view key, std::int64_t otherwise) {
  SqliteStatement query(database, "SELECT CAST(value AS INTEGER) FROM settings WHERE key = ?",
                        SqliteText{key});
  return query.step() ? query.number(0) : otherwise;
}

void erase_setting(SqliteDatabase& database, std::string_view key) {
  SqliteStatement(database, "DELETE FROM settings WHERE key = ?", SqliteText{key}).run();
}

void put_setting(SqliteDatabase& database, std::string_view key, std::string_view value) {
  SqliteStatement(database, "REPLACE INTO settings(key, value) VALUES(?, ?)", SqliteText{key}, value).run();
}

base::Error database_error(std::string_view what, std::string_view file, const SqliteError& exception) {
  const int code = exception.code();
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB) {
    return damage_error(file, fmt::format("cannot {}: {}", what, exception.what()));
  }
  return {Errc::database_failed, fmt::format("cannot {} in the scan database {}: {}{}", what, file,
                                             exception.what(), advice(code, file))};
}

}  // namespace spoor::scanner
