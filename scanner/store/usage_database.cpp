#include "scanner/store/usage_database.h"

#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/core.h>
#include <sqlite3.h>

#include <chrono>
#include <utility>

#include "base/number.h"
#include "scanner/errors.h"
#include "scanner/store/checksum_vfs.h"
#include "scanner/store/database_files.h"
#include "scanner/store/database_schema.h"
#include "scanner/store/sqlite_guard.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::scanner {
namespace {

constexpr int busy_timeout_ms = 10'000;

// Whether the database is permanently unusable, unlike one that could not be opened this time.
bool is_beyond_use(const base::Error& error) {
  return error.code == Errc::database_damaged || error.code == Errc::database_unusable;
}

constexpr std::uint64_t records_kept = 10'000;
constexpr const char* next_id_key = "next_directory_id";
constexpr const char* start_level_key = "start_level";
constexpr const char* membership_checkpoint_key = "roll_position";
constexpr const char* database_id_key = "feed_id";
constexpr const char* commits_key = "commits";
constexpr const char* files_since_key = "files_since";
constexpr const char* rebuilt_key = "rebuilt_because";
constexpr int checkpoint_timeout_ms = 1'000;

std::string identity_key(std::int64_t drive) { return fmt::format("drive_identity {}", drive); }
std::string audit_key(std::int64_t drive) { return fmt::format("audit {}", drive); }

std::int64_t to_ns(base::WallTime time) { return time.time_since_epoch().count(); }
base::WallTime from_ns(std::int64_t ns) { return base::WallTime(std::chrono::nanoseconds(ns)); }

// Commits are synced: a power cut must not undo results that a reader has seen.
void configure_for_writing(SQLite::Database& database) {
  const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA cache_size = -65536");            // KiB
  database.exec("PRAGMA wal_autocheckpoint = 0");         // finish_commit_count() does it
  database.exec("PRAGMA journal_size_limit = 67108864");  // the size of the log after a checkpoint
  // Freed pages need not be written. Without the write-ahead log, reserve_checksums() needs them written.
  if (mode == "wal") database.exec("PRAGMA secure_delete = OFF");
  // The log is kept, so that readers without permission to create it can open the database.
  int persist = 1;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_PERSIST_WAL, &persist);
}

std::int64_t number_setting(SQLite::Database& database, const char* key, std::int64_t otherwise) {
  SQLite::Statement query(database, "SELECT CAST(value AS INTEGER) FROM settings WHERE key = ?");
  query.bind(1, key);
  return query.executeStep() ? query.getColumn(0).getInt64() : otherwise;
}

void erase_setting(SQLite::Database& database, std::string_view key) {
  SQLite::Statement statement(database, "DELETE FROM settings WHERE key = ?");
  statement.bind(1, std::string(key));
  statement.exec();
}

void put_setting(SQLite::Database& database, std::string_view key, std::string_view value) {
  SQLite::Statement statement(database, "REPLACE INTO settings(key, value) VALUES(?, ?)");
  statement.bind(1, std::string(key));
  statement.bind(2, value.empty() ? "" : value.data(), static_cast<int>(value.size()));
  statement.exec();
}

std::optional<std::string> text_setting(SQLite::Database& database, std::string_view key) {
  SQLite::Statement query(database, "SELECT value FROM settings WHERE key = ?");
  query.bind(1, std::string(key));
  if (!query.executeStep()) return std::nullopt;
  return query.getColumn(0).getString();
}

// `mark` must be read before the database: it may be older than the database, but not newer.
void check_commits(SQLite::Database& database, const std::optional<CommitMark>& mark) {
  if (!mark || text_setting(database, database_id_key) != mark->database) return;
  if (static_cast<std::uint64_t>(number_setting(database, commits_key, 0)) >= mark->number) return;
  throw SQLite::Exception("its last commit is missing: the log was damaged, or this is an older copy",
                          SQLITE_CORRUPT);
}

// So that the file set aside is complete without its log. Best effort.
void empty_log(const std::filesystem::path& file) {
  std::error_code failure;
  if (!std::filesystem::exists(file, failure)) return;  // open() would create it
  auto database = UsageDatabase::open(file);
  if (!database) return;
  database->handle().setBusyTimeout(checkpoint_timeout_ms);  // for readers
  static_cast<void>(database->handle().tryExec("PRAGMA wal_checkpoint(TRUNCATE)"));
}

base::Error foreign_error(const std::filesystem::path& file) {
  return {Errc::database_unusable,
          fmt::format("{} is not a scan database of Spoor; move it aside", file.native())};
}

std::string older_text(const std::filesystem::path& file) {
  return fmt::format("the scan database {} has the format of an older Spoor", file.native());
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
  record.figures = {read_unsigned(row, 7),
                    read_unsigned(row, 8),
                    read_unsigned(row, 9),
                    read_unsigned(row, 10),
                    read_unsigned(row, 11),
                    0,
                    0};
  record.files = read_unsigned(row, 12);
  record.bytes = read_unsigned(row, 13);
  record.errors = read_unsigned(row, 14);
  record.figures.audited = read_unsigned(row, 15);
  record.figures.missed = read_unsigned(row, 16);
  return record;
}

}  // namespace

UsageDatabase::UsageDatabase(std::unique_ptr<SQLite::Database> database) : database_(std::move(database)) {}
UsageDatabase::UsageDatabase(UsageDatabase&&) noexcept = default;
UsageDatabase& UsageDatabase::operator=(UsageDatabase&&) noexcept = default;
UsageDatabase::~UsageDatabase() = default;

base::Result<UsageDatabase> UsageDatabase::open(const std::filesystem::path& file) {
  if (const auto noted = noted_damage(file)) return base::Error(Errc::database_damaged, *noted);
  const FileKind kind = kind_of(file, scan_database_id);
  if (kind == FileKind::foreign) return foreign_error(file);
  if (kind == FileKind::older) return base::Error(Errc::database_damaged, older_text(file));
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX, busy_timeout_ms,
        checksum_vfs());
    reserve_checksums(*database);
    // Before anything is written: a newer Spoor's file must not be changed.
    if (auto ready = prepare_schema(*database); !ready) return ready.error();
    add_entries_column(*database);
    configure_for_writing(*database);
    check_commits(*database, mark);
    return UsageDatabase(std::move(database));
  });
}

base::Result<UsageDatabase> UsageDatabase::begin_rebuild(const std::filesystem::path& file,
                                                         std::string_view why) {
  const std::string found(noted_damage(file).value_or(std::string(why)));
  if (auto dropped = drop_rebuilt(file); !dropped) return dropped.error();
  auto database = open(rebuilt_of(file));
  if (!database) return database;
  auto noted = guarded("write a setting", file.native(), [&] {
    put_setting(*database->database_, rebuilt_key,
                fmt::format("{}; it was set aside as {} and is rebuilt", found, aside_of(file).native()));
  });
  return noted ? std::move(database) : noted.error();
}

base::Result<UsageDatabase> UsageDatabase::finish_rebuild(const std::filesystem::path& file,
                                                          UsageDatabase rebuilt) {
  rebuilt.database_.reset();
  empty_log(file);
  if (auto placed = put_rebuilt_in_place(file); !placed)
    return base::wrap("cannot replace the scan database by the rebuilt one", placed.error());
  return open(file);
}

base::Result<std::optional<UsageDatabase>> UsageDatabase::resume_rebuild(const std::filesystem::path& file) {
  using Begun = std::optional<UsageDatabase>;
  std::error_code failure;
  if (!std::filesystem::exists(rebuilt_of(file), failure)) {
    const auto dropped = drop_rebuilt(file);  // files left by a killed process
    return dropped ? Begun() : base::Result<Begun>(dropped.error());
  }
  auto rebuilt = open(rebuilt_of(file));
  const auto committed = rebuilt ? rebuilt->scans(1) : rebuilt.error();
  if (!committed) {
    if (!is_beyond_use(committed.error())) return committed.error();
    rebuilt = committed.error();  // closed
    if (auto dropped = drop_rebuilt(file); !dropped) return dropped.error();
    return Begun();
  }
  if (committed->empty()) return Begun(*std::move(rebuilt));
  auto placed = finish_rebuild(file, *std::move(rebuilt));
  return placed ? Begun() : base::Result<Begun>(placed.error());
}

base::Result<> UsageDatabase::drop_rebuild(const std::filesystem::path& file) {
  {
    auto rebuilt = open_read_only(rebuilt_of(file));
    const auto committed = rebuilt ? rebuilt->scans(1) : rebuilt.error();
    if (committed ? !committed->empty() : !is_beyond_use(committed.error())) return {};
  }
  if (auto dropped = drop_rebuilt(file); !dropped)
    return base::wrap("cannot remove an unfinished rebuild of the scan database", dropped.error());
  return {};
}

base::Result<UsageDatabase> UsageDatabase::open_read_only(const std::filesystem::path& file) {
  std::error_code failure;
  const bool is_there = std::filesystem::exists(file, failure) || failure;
  if (!is_there || std::filesystem::file_size(file, failure) == 0) {
    return base::Error(
        std::make_error_code(std::errc::no_such_file_or_directory),
        fmt::format("there was no scan yet: {} does not exist; run 'spoor scan'", file.native()));
  }
  const FileKind kind = kind_of(file, scan_database_id);
  if (kind == FileKind::foreign) return foreign_error(file);
  if (kind == FileKind::older) {
    return base::Error(Errc::database_unusable, older_text(file) + "; the next 'spoor scan' rebuilds it");
  }
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, busy_timeout_ms, checksum_vfs());
    if (auto known = check_schema(*database); !known) return known.error();
    check_commits(*database, mark);
    return UsageDatabase(std::move(database));
  });
}

base::Result<tracker::Cursors> UsageDatabase::cursors() {
  return guarded("read the cursors", database_->getFilename(), [&] {
    SQLite::Statement query(*database_, "SELECT peer, instance, cycle FROM cursors");
    tracker::Cursors cursors;
    while (query.executeStep()) {
      // An unreadable cursor is ignored: the marks of that peer are then a gap over everything.
      const auto instance = tracker::InstanceId::parse(query.getColumn(1).getString());
      if (!instance) continue;
      cursors[query.getColumn(0).getString()] = {*instance, {read_unsigned(query, 2)}};
    }
    return cursors;
  });
}

base::Result<std::string> UsageDatabase::membership_checkpoint() {
  return guarded("read a setting", database_->getFilename(),
                 [&] { return text_setting(*database_, membership_checkpoint_key).value_or(""); });
}

base::Result<std::size_t> UsageDatabase::start_level() {
  return guarded("read a setting", database_->getFilename(), [&] {
    const std::string text = text_setting(*database_, start_level_key).value_or("");
    const std::size_t level = base::parse_number<std::size_t>(text).value_or(0);
    return level <= tracker::LevelSchedule::level_max ? level : 0;
  });
}

base::Result<std::vector<ScanRecord>> UsageDatabase::scans(std::size_t count_max,
                                                           std::size_t reason_bytes_max) {
  return guarded("list the scans", database_->getFilename(), [&] {
    SQLite::Statement query(
        *database_,
        "SELECT id, started_at_ns, finished_at_ns, cycle, walked_everything, partial, reason, "
        "dirs_walked, dirs_skipped, dirs_changed, dirs_new, dirs_deleted, files, bytes, errors, audited, "
        "missed "
        "FROM scans ORDER BY id DESC LIMIT ?");
    query.bind(1, static_cast<std::int64_t>(count_max));
    std::vector<ScanRecord> records;
    while (query.executeStep()) {
      records.push_back(read_record(query));
      std::string& reason = records.back().reason;
      if (reason.size() > reason_bytes_max) reason.replace(reason_bytes_max, std::string::npos, "...");
    }
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
      directories_(std::make_unique<DirectoryStore>(database, number_setting(database, next_id_key, 1))),
      changes_(std::make_unique<ChangeLog>(database, scan_id_)),
      links_(std::make_unique<LinkStore>(database)) {}

// Finalizes statements first: SQLite cannot roll back while one is active.
ScanTransaction::~ScanTransaction() {
  files_.reset();
  links_.reset();
  changes_.reset();
  directories_.reset();
}

base::Result<bool> ScanTransaction::keep_files(bool wanted) {
  return guarded("store the files of directories", database_.getFilename(), [&] {
    const bool were_kept = text_setting(database_, files_since_key).has_value();
    if (were_kept && !wanted) {
      drop_file_tables(database_);
      erase_setting(database_, files_since_key);
    }
    if (!wanted) return false;
    if (!were_kept) {
      create_file_tables(database_);
      put_setting(database_, files_since_key, std::to_string(scan_id_));
    }
    changes_->keep_files();
    files_ = std::make_unique<FileFeed>(database_, *changes_, !were_kept);
    return !were_kept;
  });
}

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
  return guarded("remove a drive", database_.getFilename(), [&] {
    SQLite::Statement statement(database_, "DELETE FROM drives WHERE id = ?");
    statement.bind(1, drive.id);
    statement.exec();
    erase_setting(database_, identity_key(drive.id));  // SQLite may reuse the id
    erase_setting(database_, audit_key(drive.id));
  });
}

base::Result<std::optional<std::string>> ScanTransaction::drive_identity(std::int64_t drive) {
  return setting(identity_key(drive));
}

base::Result<> ScanTransaction::set_drive_identity(std::int64_t drive, std::string_view identity) {
  return set_setting(identity_key(drive), identity);
}

base::Result<std::optional<std::string>> ScanTransaction::drive_audit(std::int64_t drive) {
  return setting(audit_key(drive));
}

base::Result<> ScanTransaction::set_drive_audit(std::int64_t drive, std::string_view text) {
  return set_setting(audit_key(drive), text);
}

base::Result<std::optional<std::string>> ScanTransaction::setting(std::string_view key) {
  return guarded("read a setting", database_.getFilename(), [&] { return text_setting(database_, key); });
}

base::Result<> ScanTransaction::set_setting(std::string_view key, std::string_view value) {
  return guarded("write a setting", database_.getFilename(), [&] { put_setting(database_, key, value); });
}

base::Result<> ScanTransaction::remove_setting(std::string_view key) {
  return guarded("remove a setting", database_.getFilename(), [&] { erase_setting(database_, key); });
}

base::Result<std::string> ScanTransaction::rebuilt_because() {
  const auto why = setting(rebuilt_key);
  if (!why) return why.error();
  return why->value_or("");
}

base::Result<> ScanTransaction::set_cursors(const tracker::Cursors& cursors) {
  return guarded("write the cursors", database_.getFilename(), [&] {
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

base::Result<> ScanTransaction::set_membership_checkpoint(const std::string& position) {
  return set_setting(membership_checkpoint_key, position);
}

base::Result<> ScanTransaction::commit(const ScanRecord& record) {
  if (auto kept = set_setting(next_id_key, std::to_string(directories_->next_id())); !kept) return kept;
  return guarded("commit a scan", database_.getFilename(), [&] {
    add_record(record);
    forget_old_records();
    const auto commits = number_setting(database_, commits_key, 0) + 1;
    put_setting(database_, commits_key, std::to_string(commits));
    transaction_->commit();
    finish_commit_count(static_cast<std::uint64_t>(commits));
  });
}

// Pages of the file have checksums, and an empty log cannot be damaged. The next commit repeats what fails
// here.
void ScanTransaction::finish_commit_count(std::uint64_t commits) {
  const auto id = text_setting(database_, database_id_key);
  if (id) static_cast<void>(keep_commit_mark(database_.getFilename(), {*id, commits}));
  database_.setBusyTimeout(checkpoint_timeout_ms);  // for readers
  static_cast<void>(database_.tryExec("PRAGMA wal_checkpoint(TRUNCATE)"));
  database_.setBusyTimeout(busy_timeout_ms);
}

void ScanTransaction::add_record(const ScanRecord& record) {
  SQLite::Statement insert(database_,
                           "INSERT INTO scans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
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
        figures.dirs_deleted, record.files, record.bytes, record.errors, figures.audited, figures.missed}) {
    bind(figure);
  }
  insert.exec();
}

// Keeps the last scan that saw everything: its start is Usage::as_of.
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
