#include "scanner/usage_database.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>
#include <sqlite3.h>

#include <charconv>
#include <chrono>
#include <utility>

#include "scanner/database_schema.h"
#include "scanner/errors.h"
#include "scanner/sqlite_guard.h"
#include "tracker/level_schedule.h"

namespace spoor::scanner {
namespace {

constexpr int busy_timeout_ms = 10'000;
constexpr std::uint64_t records_kept = 10'000;
constexpr const char* next_id_key = "next_directory_id";
constexpr const char* start_level_key = "start_level";
constexpr const char* roll_position_key = "roll_position";

std::string identity_key(std::int64_t drive) { return fmt::format("drive_identity {}", drive); }

std::int64_t to_ns(base::WallTime time) { return time.time_since_epoch().count(); }
base::WallTime from_ns(std::int64_t ns) { return base::WallTime(std::chrono::nanoseconds(ns)); }

// A commit is synced: whoever read a scan's results must not find them undone by a power cut.
void configure_for_writing(SQLite::Database& database) {
  database.exec("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA cache_size = -65536");            // KiB
  database.exec("PRAGMA journal_size_limit = 67108864");  // what stays of the log once it is copied back
  // The log stays behind, so that readers without the right to create it can open the database too.
  int persist = 1;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
}

std::int64_t number_setting(SQLite::Database& database, const char* key, std::int64_t otherwise) {
  SQLite::Statement query(database, "SELECT CAST(value AS INTEGER) FROM settings WHERE key = ?");
  query.bind(1, key);
  return query.executeStep() ? query.getColumn(0).getInt64() : otherwise;
}

std::optional<std::string> text_setting(SQLite::Database& database, std::string_view key) {
  SQLite::Statement query(database, "SELECT value FROM settings WHERE key = ?");
  query.bind(1, std::string(key));
  if (!query.executeStep()) return std::nullopt;
  return query.getColumn(0).getString();
}

std::vector<StoredDrive> read_drives(SQLite::Database& database) {
  SQLite::Statement query(database, "SELECT id, path FROM drives ORDER BY path");
  std::vector<StoredDrive> drives;
  while (query.executeStep())
    drives.push_back({query.getColumn(0).getInt64(), query.getColumn(1).getString()});
  return drives;
}

std::uint64_t read_unsigned(SQLite::Statement& statement, int index) {
  return static_cast<std::uint64_t>(statement.getColumn(index).getInt64());
}

ScanRecord read_record(SQLite::Statement& row) {
  ScanRecord record;
  record.id = read_unsigned(row, 0);
  record.started_at = from_ns(row.getColumn(1).getInt64());
  record.finished_at = from_ns(row.getColumn(2).getInt64());
  record.cycle = {read_unsigned(row, 3)};
  record.walked_everything = row.getColumn(4).getInt() != 0;
  record.partial = row.getColumn(5).getInt() != 0;
  record.reason = row.getColumn(6).getString();
  record.figures = {read_unsigned(row, 7), read_unsigned(row, 8), read_unsigned(row, 9),
                    read_unsigned(row, 10), read_unsigned(row, 11)};
  record.files = read_unsigned(row, 12);
  record.bytes = read_unsigned(row, 13);
  record.errors = read_unsigned(row, 14);
  return record;
}

}  // namespace

UsageDatabase::UsageDatabase(std::unique_ptr<SQLite::Database> database) : database_(std::move(database)) {}
UsageDatabase::UsageDatabase(UsageDatabase&&) noexcept = default;
UsageDatabase& UsageDatabase::operator=(UsageDatabase&&) noexcept = default;
UsageDatabase::~UsageDatabase() = default;

base::Result<UsageDatabase> UsageDatabase::open(const std::filesystem::path& file) {
  return guarded("open what is kept", file.native(), [&]() -> base::Result<UsageDatabase> {
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, busy_timeout_ms);
    // First of all: another program's file, or a newer Spoor's, is not to be touched.
    if (auto ready = prepare_schema(*database); !ready) return ready.error();
    configure_for_writing(*database);
    return UsageDatabase(std::move(database));
  });
}

base::Result<UsageDatabase> UsageDatabase::open_read_only(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::exists(file, failure) && !failure) {
    return base::Error(std::make_error_code(std::errc::no_such_file_or_directory),
                       fmt::format("there is no scan database at {} yet; run a scan", file.native()));
  }
  return guarded("open what is kept", file.native(), [&]() -> base::Result<UsageDatabase> {
    auto database = std::make_unique<SQLite::Database>(file.native(), SQLite::OPEN_READONLY, busy_timeout_ms);
    if (auto known = check_schema(*database); !known) return known.error();
    return UsageDatabase(std::move(database));
  });
}

base::Result<tracker::Cursors> UsageDatabase::cursors() {
  return guarded("read the cursors", database_->getFilename(), [&] {
    SQLite::Statement query(*database_, "SELECT peer, instance, cycle FROM cursors");
    tracker::Cursors cursors;
    while (query.executeStep()) {
      // A cursor that can't be read is none: that peer's marks are then a gap over everything.
      const auto instance = tracker::InstanceId::parse(query.getColumn(1).getString());
      if (!instance) continue;
      cursors[query.getColumn(0).getString()] = {*instance, {read_unsigned(query, 2)}};
    }
    return cursors;
  });
}

base::Result<std::string> UsageDatabase::roll_position() {
  return guarded("read a setting", database_->getFilename(),
                 [&] { return text_setting(*database_, roll_position_key).value_or(""); });
}

base::Result<std::size_t> UsageDatabase::start_level() {
  return guarded("read a setting", database_->getFilename(), [&] {
    const std::string text = text_setting(*database_, start_level_key).value_or("");
    std::size_t level = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), level);
    const bool is_level = failure == std::errc() && end == text.data() + text.size() &&
                          level <= tracker::LevelSchedule::level_max;
    return is_level ? level : 0;
  });
}

base::Result<std::vector<ScanRecord>> UsageDatabase::scans(std::size_t count_max) {
  return guarded("list the scans", database_->getFilename(), [&] {
    SQLite::Statement query(
        *database_,
        "SELECT id, started_at_ns, finished_at_ns, cycle, walked_everything, partial, reason, "
        "dirs_walked, dirs_skipped, dirs_changed, dirs_new, dirs_deleted, files, bytes, errors "
        "FROM scans ORDER BY id DESC LIMIT ?");
    query.bind(1, static_cast<std::int64_t>(count_max));
    std::vector<ScanRecord> records;
    while (query.executeStep()) records.push_back(read_record(query));
    return records;
  });
}

base::Result<std::vector<StoredDrive>> UsageDatabase::drives() {
  return guarded("list the drives", database_->getFilename(), [&] { return read_drives(*database_); });
}

base::Result<std::unique_ptr<ScanTransaction>> UsageDatabase::begin_scan() {
  return guarded("begin a scan", database_->getFilename(),
                 [&] { return std::make_unique<ScanTransaction>(*database_); });
}

ScanTransaction::ScanTransaction(SQLite::Database& database)
    : database_(database),
      transaction_(std::make_unique<SQLite::Transaction>(database, SQLite::TransactionBehavior::IMMEDIATE)),
      scan_id_(
          static_cast<std::uint64_t>(database.execAndGet("SELECT ifnull(max(id), 0) FROM scans").getInt64()) +
          1),
      directories_(std::make_unique<DirectoryStore>(database, number_setting(database, next_id_key, 1))) {}

// Statements first: SQLite can't roll back below one that still runs.
ScanTransaction::~ScanTransaction() { directories_.reset(); }

base::Result<std::vector<StoredDrive>> ScanTransaction::drives() {
  return guarded("list the drives", database_.getFilename(), [&] { return read_drives(database_); });
}

base::Result<StoredDrive> ScanTransaction::add_drive(const std::string& path) {
  return guarded("add a drive", database_.getFilename(), [&] {
    SQLite::Statement insert(database_, "INSERT INTO drives(path) VALUES(?)");
    insert.bind(1, path.data(), static_cast<int>(path.size()));
    insert.exec();
    return StoredDrive{database_.getLastInsertRowid(), path};
  });
}

base::Result<> ScanTransaction::forget_drive(const StoredDrive& drive) {
  return guarded("forget a drive", database_.getFilename(), [&] {
    SQLite::Statement statement(database_, "DELETE FROM drives WHERE id = ?");
    statement.bind(1, drive.id);
    statement.exec();
    SQLite::Statement identity(database_, "DELETE FROM settings WHERE key = ?");  // ids can come again
    identity.bind(1, identity_key(drive.id));
    identity.exec();
  });
}

base::Result<std::optional<std::string>> ScanTransaction::drive_identity(std::int64_t drive) {
  return setting(identity_key(drive));
}

base::Result<> ScanTransaction::set_drive_identity(std::int64_t drive, std::string_view identity) {
  return set_setting(identity_key(drive), identity);
}

base::Result<std::optional<std::string>> ScanTransaction::setting(std::string_view key) {
  return guarded("read a setting", database_.getFilename(), [&] { return text_setting(database_, key); });
}

base::Result<> ScanTransaction::set_setting(std::string_view key, std::string_view value) {
  return guarded("keep a setting", database_.getFilename(), [&] {
    SQLite::Statement statement(database_, "REPLACE INTO settings(key, value) VALUES(?, ?)");
    statement.bind(1, std::string(key));
    statement.bind(2, value.empty() ? "" : value.data(), static_cast<int>(value.size()));
    statement.exec();
  });
}

base::Result<> ScanTransaction::set_cursors(const tracker::Cursors& cursors) {
  return guarded("keep the cursors", database_.getFilename(), [&] {
    database_.exec("DELETE FROM cursors");
    SQLite::Statement insert(database_, "INSERT INTO cursors(peer, instance, cycle) VALUES(?, ?, ?)");
    for (const auto& [peer, cursor] : cursors) {
      insert.bind(1, peer);
      insert.bind(2, cursor.instance.to_string());
      insert.bind(3, static_cast<std::int64_t>(cursor.cycle.value));
      insert.exec();
      insert.reset();
    }
  });
}

base::Result<> ScanTransaction::set_start_level(std::size_t level) {
  return set_setting(start_level_key, std::to_string(level));
}

base::Result<> ScanTransaction::set_roll_position(const std::string& position) {
  return set_setting(roll_position_key, position);
}

base::Result<> ScanTransaction::commit(const ScanRecord& record) {
  if (auto kept = set_setting(next_id_key, std::to_string(directories_->next_id())); !kept) return kept;
  return guarded("commit a scan", database_.getFilename(), [&] {
    add_record(record);
    forget_old_records();
    transaction_->commit();
  });
}

void ScanTransaction::add_record(const ScanRecord& record) {
  SQLite::Statement insert(database_,
                           "INSERT INTO scans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
  int index = 0;
  const auto bind = [&](std::uint64_t value) { insert.bind(++index, static_cast<std::int64_t>(value)); };
  bind(scan_id_);
  insert.bind(++index, to_ns(record.started_at));
  insert.bind(++index, to_ns(record.finished_at));
  bind(record.cycle.value);
  bind(record.walked_everything ? 1 : 0);
  bind(record.partial ? 1 : 0);
  insert.bind(++index, record.reason);
  const WalkFigures& figures = record.figures;
  for (const std::uint64_t figure :
       {figures.dirs_walked, figures.dirs_skipped, figures.dirs_changed, figures.dirs_new,
        figures.dirs_deleted, record.files, record.bytes, record.errors}) {
    bind(figure);
  }
  insert.exec();
}

// Never the last one that saw everything: it says as of when the totals are.
void ScanTransaction::forget_old_records() {
  SQLite::Statement statement(
      database_,
      "DELETE FROM scans WHERE id <= ?1 - ?2 AND "
      "id < ifnull((SELECT max(id) FROM scans WHERE walked_everything OR NOT partial), 0)");
  statement.bind(1, static_cast<std::int64_t>(scan_id_));
  statement.bind(2, static_cast<std::int64_t>(records_kept));
  statement.exec();
}

}  // namespace spoor::scanner
