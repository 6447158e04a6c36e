#include "scanner/store/usage_database.h"

#include <SQLiteCpp/Column.h>
#include <fmt/core.h>

#include <array>
#include <boost/endian/conversion.hpp>
#include <chrono>
#include <utility>

#include "base/number.h"
#include "scanner/errors.h"
#include "scanner/store/checksum_vfs.h"
#include "scanner/store/database_files.h"
#include "scanner/store/database_schema.h"
#include "scanner/store/sqlite.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::scanner {
namespace {

constexpr int busy_timeout_ms = 10'000;

// Whether the database is permanently unusable, unlike one that could not be opened this time.
bool is_beyond_use(const base::Error& error) {
  return error.code == Errc::database_damaged || error.code == Errc::database_unusable;
}

constexpr std::uint64_t records_kept = 10'000;
constexpr const char* database_id_key = "feed_id";
constexpr const char* commits_key = "commits";
constexpr const char* file_number_key = "file_number";
constexpr const char* put_apart_key = "put_apart";
constexpr const char* files_since_key = "files_since";
constexpr int checkpoint_timeout_ms = 1'000;
constexpr std::uint64_t log_bytes_max = std::uint64_t{1} << 20U;  // a commit empties a log of this size

std::int64_t to_ns(base::WallTime time) { return time.time_since_epoch().count(); }
base::WallTime from_ns(std::int64_t ns) { return base::WallTime(std::chrono::nanoseconds(ns)); }

// Commits are synced: a power cut must not undo results that a reader has seen.
void configure_for_writing(SQLite::Database& database) {
  const std::string mode = database.execAndGet("PRAGMA journal_mode = WAL").getString();
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA cache_size = -2048");             // KiB: a small scan looks at most pages once
  database.exec("PRAGMA wal_autocheckpoint = 0");         // finish_commit() does it
  database.exec("PRAGMA journal_size_limit = 67108864");  // the size of the log after a checkpoint
  // Freed pages need not be written. Without the write-ahead log, reserve_checksums() needs them written.
  if (mode == "wal") database.exec("PRAGMA secure_delete = OFF");
  // Also keeps the log, so that readers without permission to create it can open the database.
  sqlite3_db_config(database.getHandle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
}

std::optional<std::string> text_setting(SQLite::Database& database, std::string_view key) {
  SqliteStatement query(database, "SELECT value FROM settings WHERE key = ?", SqliteText{key});
  if (!query.step()) return std::nullopt;
  return std::string(query.blob(0));
}

// SQLite's change counter in the file itself, below the log.
std::uint32_t file_number(SQLite::Database& database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database.getHandle(), "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  std::array<unsigned char, 4> counter{};
  const int code = file->pMethods->xRead(file, counter.data(), counter.size(), 24);
  const bool is_read = code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ;  // zeros, where it is too short
  if (!is_read) throw SQLite::Exception("cannot read its header", code);
  return boost::endian::load_big_u32(counter.data());
}

// `mark` must be read before the database: it may be older than the database, but not newer.
void check_commits(SQLite::Database& database, const std::optional<CommitMark>& mark) {
  const std::int64_t at_commit = number_setting(database, file_number_key, 0);
  if (file_number(database) < at_commit)  // read after it: another process may write back the log
    throw SQLite::Exception("its log is that of a newer one: this is an older copy", SQLITE_CORRUPT);
  if (!mark || text_setting(database, database_id_key) != mark->database) return;
  if (static_cast<std::uint64_t>(number_setting(database, commits_key, 0)) >= mark->number) return;
  throw SQLite::Exception("its last commit is missing: the log was damaged, or this is an older copy",
                          SQLITE_CORRUPT);
}

void write_back_log(SQLite::Database& database) {
  database.setBusyTimeout(checkpoint_timeout_ms);  // for readers
  static_cast<void>(database.tryExec("PRAGMA wal_checkpoint(TRUNCATE)"));
  database.setBusyTimeout(busy_timeout_ms);
}

// Nothing if it cannot be looked at.
std::optional<std::uint64_t> log_bytes(SQLite::Database& database) {
  std::error_code failure;
  const std::uint64_t bytes = std::filesystem::file_size(database.getFilename() + "-wal", failure);
  return failure ? std::nullopt : std::optional(bytes);
}

// SQLite would apply the log to an older copy in the place of the file. So each commit has the number of the
// file below the log; it gets a larger one when the log is written back, as SQLite counts a commit that
// writes to the header.
void count_commit(SQLite::Database& database) {
  put_setting(database, file_number_key, std::to_string(file_number(database)));
  const int version = database.execAndGet("PRAGMA user_version").getInt();
  database.exec(fmt::format("PRAGMA user_version = {}", version));
}

std::string older_text(const std::filesystem::path& file) {
  return fmt::format("the scan database {} has the format of an older Spoor", file.native());
}

std::string history_text(const CopiedHistory& copied) {
  if (!copied.is_any) return copied.is_whole ? "" : "; its history could not be read";
  return copied.is_whole ? " with its history" : " with what could be read of its history";
}

constexpr std::string_view select_scans =
    "SELECT id, started_at_ns, finished_at_ns, cycle, walked_everything, partial, reason, dirs_walked, "
    "dirs_skipped, dirs_changed, dirs_new, dirs_deleted, files, bytes, errors, audited, missed FROM scans ";

ScanRecord read_record(const SqliteStatement& row) {
  const auto number = [&](int column) { return row.number<std::uint64_t>(column); };
  ScanRecord record;
  record.id = number(0);
  record.started_at = from_ns(row.number(1));
  record.finished_at = from_ns(row.number(2));
  record.cycle = {number(3)};
  record.walked_everything = number(4) != 0;
  record.partial = number(5) != 0;
  record.reason = row.blob(6);
  record.figures = {number(7), number(8), number(9), number(10), number(11), number(15), number(16)};
  record.files = number(12);
  record.bytes = number(13);
  record.errors = number(14);
  return record;
}

}  // namespace

std::string identity_key(std::int64_t drive) { return fmt::format("drive_identity {}", drive); }
std::string gap_key(std::int64_t drive) { return fmt::format("drive_gap {}", drive); }
std::string stamp_key(std::int64_t drive) { return fmt::format("drive_stamp {}", drive); }
std::string audit_key(std::int64_t drive) { return fmt::format("audit {}", drive); }

UsageDatabase::UsageDatabase(std::unique_ptr<SQLite::Database> database) : database_(std::move(database)) {}

base::Result<UsageDatabase> UsageDatabase::open(const std::filesystem::path& file) {
  const auto noted = noted_damage(file);
  if (!noted) return noted.error();
  if (*noted) return base::Error(Errc::database_damaged, **noted);
  const FileKind kind = kind_of(file, scan_database_id, scan_database_oldest);
  if (kind == FileKind::foreign) return foreign_error(file.native());
  if (kind == FileKind::older) return base::Error(Errc::database_damaged, older_text(file));
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    if (!mark) return mark.error();
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE | SQLite::OPEN_NOMUTEX, busy_timeout_ms,
        checksum_vfs());
    reserve_checksums(*database);
    if (is_migratable(*database)) configure_for_writing(*database);
    // Before anything else is written: a newer Spoor's file must not be changed.
    if (auto ready = prepare_schema(*database); !ready) return ready.error();
    configure_for_writing(*database);
    check_commits(*database, *mark);
    return UsageDatabase(std::move(database));
  });
}

base::Result<UsageDatabase> UsageDatabase::begin_rebuild(const std::filesystem::path& file,
                                                         std::string_view why) {
  const auto noted_before = noted_damage(file);
  if (!noted_before) return noted_before.error();
  const std::string found(noted_before->value_or(std::string(why)));
  if (auto dropped = drop_rebuilt(file); !dropped) return dropped.error();
  auto database = open(rebuilt_of(file));
  if (!database) return database;
  const bool is_newest = open_read_only(file).has_value();  // not an older copy, nor without its last commits
  auto noted = guarded("begin a rebuild", *database->database_, [&] {
    SQLite::Transaction transaction(*database->database_, SQLite::TransactionBehavior::IMMEDIATE);
    CopiedHistory copied = copy_history(file, *database->database_);
    if (copied.is_any && !is_newest) copied.is_whole = false;
    const std::string history = history_text(copied);
    put_setting(
        *database->database_, rebuilt_key,
        fmt::format("{}; it was set aside as {} and is rebuilt{}", found, aside_of(file).native(), history));
    require_space(*database->database_);
    transaction.commit();
  });
  return noted ? std::move(database) : noted.error();
}

base::Result<UsageDatabase> UsageDatabase::finish_rebuild(const std::filesystem::path& file,
                                                          UsageDatabase rebuilt) {
  rebuilt.empty_log();
  rebuilt.database_.reset();
  std::error_code failure;
  if (std::filesystem::exists(file, failure)) {  // open() would create it
    // So that the file set aside is complete without its log. Best effort.
    static_cast<void>(guarded("empty the log", file.native(), [&] {
      SQLite::Database replaced(file.native(), SQLite::OPEN_READWRITE | SQLite::OPEN_NOMUTEX, busy_timeout_ms,
                                checksum_vfs());
      write_back_log(replaced);
    }));
  }
  if (auto placed = put_rebuilt_in_place(file); !placed)
    return base::wrap("cannot replace the scan database by the rebuilt one", placed.error());
  return open(file);
}

base::Result<std::optional<UsageDatabase>> UsageDatabase::resume_rebuild(const std::filesystem::path& file) {
  using Begun = std::optional<UsageDatabase>;
  const auto drop = [&]() -> base::Result<Begun> {
    const auto dropped = drop_rebuilt(file);
    return dropped ? Begun() : base::Result<Begun>(dropped.error());
  };
  std::error_code failure;
  if (!std::filesystem::exists(rebuilt_of(file), failure) && !failure) return drop();  // what is beside it
  auto rebuilt = open(rebuilt_of(file));
  const auto committed = rebuilt ? rebuilt->scans(1) : rebuilt.error();
  if (!committed) {
    if (!is_beyond_use(committed.error())) return committed.error();
    rebuilt = committed.error();  // closed
    return drop();
  }
  if (committed->empty()) {
    const auto reason = rebuilt->setting(rebuilt_key);
    if (!reason) return reason.error();
    if (*reason) return Begun(*std::move(rebuilt));
    rebuilt->database_.reset();  // killed before begin_rebuild() had copied the history
    return drop();
  }
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
  const FileKind kind = kind_of(file, scan_database_id, scan_database_oldest);
  if (kind == FileKind::foreign) return foreign_error(file.native());
  if (kind == FileKind::older) {
    return base::Error(Errc::database_unusable, older_text(file) + "; the next 'spoor scan' rebuilds it");
  }
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    if (!mark) return mark.error();
    auto database = std::make_unique<SQLite::Database>(
        file.native(), SQLite::OPEN_READONLY | SQLite::OPEN_NOMUTEX, busy_timeout_ms, checksum_vfs());
    if (auto known = check_schema(*database); !known) return known.error();
    check_commits(*database, *mark);
    return UsageDatabase(std::move(database));
  });
}

base::Result<tracker::PeerBook> UsageDatabase::peers() {
  return guarded("read the peers", *database_, [&] {
    SqliteStatement query(*database_, peers_query(*database_));
    tracker::PeerBook book;
    while (query.step()) {
      // One without an instance is found by no scan: it becomes a gap.
      const auto instance = tracker::InstanceId::parse(std::string(query.blob(1)));
      const auto standing =
          std::min(query.number<std::uint64_t>(4), static_cast<std::uint64_t>(tracker::standing_max));
      book[{std::string(query.blob(0)), instance.value_or(tracker::InstanceId())}] = {
          .cycle = {query.number<std::uint64_t>(2)},
          .home = std::string(query.blob(3)),
          .standing = static_cast<tracker::Standing>(standing),
          .silent = std::chrono::milliseconds(query.number<std::int64_t>(5)),
          .run = query.number<std::uint64_t>(6)};
    }
    return book;
  });
}

base::Result<std::string> UsageDatabase::own_marks_of() {
  return guarded("read a setting", *database_,
                 [&] { return text_setting(*database_, own_marks_key).value_or(""); });
}

base::Result<std::optional<std::string>> UsageDatabase::setting(std::string_view key) {
  return guarded("read a setting", *database_, [&] { return text_setting(*database_, key); });
}

base::Result<> UsageDatabase::replace_setting(std::string_view key, std::string_view value) {
  return guarded("write a setting", *database_, [&] {
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    put_setting(*database_, key, value);
    count_commit(*database_);
    transaction.commit();
  });
}

base::Result<std::size_t> UsageDatabase::start_level() {
  return guarded("read a setting", *database_, [&] {
    const std::string text = text_setting(*database_, start_level_key).value_or("");
    const std::size_t level = base::parse_number<std::size_t>(text).value_or(0);
    return level <= tracker::LevelSchedule::level_max ? level : 0;
  });
}

base::Result<std::optional<ScanRecord>> UsageDatabase::scan(std::uint64_t id) {
  return guarded("look up a scan", *database_, [&] {
    SqliteStatement query(*database_, std::string(select_scans) + "WHERE id = ?", id);
    return query.step() ? std::optional(read_record(query)) : std::nullopt;
  });
}

base::Result<std::vector<ScanRecord>> UsageDatabase::scans(std::size_t count_max,
                                                           std::size_t reason_bytes_max) {
  return guarded("list the scans", *database_, [&] {
    SqliteStatement query(*database_, std::string(select_scans) + "ORDER BY id DESC LIMIT ?", count_max);
    std::vector<ScanRecord> records;
    while (query.step()) {
      records.push_back(read_record(query));
      std::string& reason = records.back().reason;
      if (reason.size() > reason_bytes_max) reason.replace(reason_bytes_max, std::string::npos, "...");
    }
    return records;
  });
}

base::Result<> UsageDatabase::merge_rows(std::uint64_t put_apart_min) {
  return guarded("merge the rows of directories", *database_, [&] {
    const auto put_apart = static_cast<std::uint64_t>(number_setting(*database_, put_apart_key, 0));
    if (put_apart == 0 || put_apart < put_apart_min) return;
    SQLite::Transaction transaction(*database_, SQLite::TransactionBehavior::IMMEDIATE);
    merge_newer_rows(*database_);
    erase_setting(*database_, put_apart_key);
    count_commit(*database_);
    require_space(*database_);
    transaction.commit();
    write_back_log(*database_);
  });
}

void UsageDatabase::empty_log() { write_back_log(*database_); }

base::Result<std::unique_ptr<ScanTransaction>> UsageDatabase::begin_scan() {
  return guarded("begin a scan", *database_, [&] { return std::make_unique<ScanTransaction>(*database_); });
}

ScanTransaction::ScanTransaction(SQLite::Database& database)
    : database_(database),
      transaction_(std::in_place, database, SQLite::TransactionBehavior::IMMEDIATE),
      scan_id_(
          static_cast<std::uint64_t>(database.execAndGet("SELECT ifnull(max(id), 0) FROM scans").getInt64()) +
          1),
      directories_(database, number_setting(database, next_id_key, 1)),
      changes_(database, scan_id_),
      links_(database) {}

base::Result<bool> ScanTransaction::keep_files(bool wanted) {
  return guarded("store the files of directories", database_, [&] {
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
    changes_.keep_files();
    files_.emplace(database_, changes_, !were_kept);
    return !were_kept;
  });
}

base::Result<bool> ScanTransaction::keep_history(bool wanted) {
  return guarded("keep the history", database_, [&] {
    const bool was_kept = has_history_tables(database_);
    if (was_kept && !wanted) {
      drop_history_tables(database_);
      for (const char* const key :
           {history_since_key, history_scan_key, history_settings_key, history_counts_key, history_known_key})
        erase_setting(database_, key);
    }
    if (!wanted) return false;
    if (!was_kept) create_history_tables(database_);
    history_.emplace(database_);
    return !was_kept;
  });
}

base::Result<> ScanTransaction::expect_many_changes() {
  auto prepared = guarded("prepare many changes", database_, [&] {
    database_.exec("PRAGMA cache_size = -65536");
    erase_setting(database_, put_apart_key);
  });
  return prepared ? directories_.merge() : prepared;
}

// What a scan of a Spoor without them changed is not known.
base::Result<bool> ScanTransaction::keep_owners(std::optional<std::uint32_t> depth) {
  return guarded("keep the owners of files", database_, [&] {
    const auto kept = text_setting(database_, owners_key);
    const bool goes_on = depth && (kept == owners_setting({*depth, scan_id_ - 1}) ||
                                   kept == owners_setting({*depth, scan_id_}));  // of an unfinished scan
    // What a row has without the setting may be of any time.
    if (!goes_on && (kept || depth)) {
      forget_owners(database_);
      erase_setting(database_, owners_key);
    }
    if (!depth) return false;
    if (!goes_on) {
      create_owner_tables(database_);
      put_setting(database_, owners_key, owners_setting({*depth, scan_id_}));
    }
    owners_depth_ = depth;
    owners_.emplace(database_, *depth);
    links_.keep_owners(*owners_);
    return !goes_on;
  });
}

base::Result<> ScanTransaction::forget_owners_of(std::int64_t drive) {
  return guarded("remove the owners of files", database_, [&] {
    if (owners_) owners_->erase_drive(drive);
  });
}

base::Result<std::vector<StoredDrive>> ScanTransaction::drives() {
  return guarded("list the drives", database_, [&] {
    SqliteStatement query(database_, "SELECT id, path FROM drives ORDER BY path");
    std::vector<StoredDrive> drives;
    while (query.step()) drives.push_back({query.number(0), std::string(query.blob(1))});
    return drives;
  });
}

base::Result<StoredDrive> ScanTransaction::add_drive(const std::string& path) {
  return guarded("add a drive", database_, [&] {
    SqliteStatement(database_, "INSERT INTO drives(path) VALUES(?)", path).run();
    return StoredDrive{database_.getLastInsertRowid(), path};
  });
}

base::Result<> ScanTransaction::forget_drive(const StoredDrive& drive) {
  return guarded("remove a drive", database_, [&] {
    SqliteStatement(database_, "DELETE FROM drives WHERE id = ?", drive.id).run();
    erase_setting(database_, identity_key(drive.id));  // SQLite may reuse the id
    erase_setting(database_, gap_key(drive.id));
    erase_setting(database_, stamp_key(drive.id));
    erase_setting(database_, audit_key(drive.id));
  });
}

base::Result<std::optional<std::string>> ScanTransaction::setting(std::string_view key) {
  return guarded("read a setting", database_, [&] { return text_setting(database_, key); });
}

base::Result<> ScanTransaction::set_setting(std::string_view key, std::string_view value) {
  return guarded("write a setting", database_, [&] { put_setting(database_, key, value); });
}

base::Result<> ScanTransaction::remove_setting(std::string_view key) {
  return guarded("remove a setting", database_, [&] { erase_setting(database_, key); });
}

base::Result<> ScanTransaction::set_peers(const tracker::PeerBook& book) {
  return guarded("write the peers", database_, [&] {
    database_.exec("DELETE FROM peers");
    SqliteStatement insert(database_,
                           "INSERT INTO peers(name, instance, cycle, home, standing, silent_ms, run) "
                           "VALUES(?, ?, ?, ?, ?, ?, ?)");
    for (const auto& [id, peer] : book) {
      const std::string instance = id.instance.to_string();
      const SqliteStatement::Use use(insert, SqliteText{id.name}, SqliteText{instance}, peer.cycle.value,
                                     SqliteText{peer.home}, static_cast<std::uint64_t>(peer.standing),
                                     static_cast<std::int64_t>(peer.silent.count()), peer.run);
      insert.run();
    }
  });
}

base::Result<bool> ScanTransaction::commit_so_far() {
  return guarded("commit what was walked", database_, [&] {
    try {
      commit_all();
    } catch (const SQLite::Exception& exception) {
      if (exception.getErrorCode() != SQLITE_BUSY) throw;
      return false;  // without a write-ahead log
    }
    transaction_.reset();
    transaction_.emplace(database_, SQLite::TransactionBehavior::IMMEDIATE);
    return true;
  });
}

base::Result<> ScanTransaction::commit(const ScanRecord& record) {
  return guarded("commit a scan", database_, [&] {
    if (owners_depth_) put_setting(database_, owners_key, owners_setting({*owners_depth_, scan_id_}));
    add_record(record);
    forget_old_records();
    commit_all();
  });
}

void ScanTransaction::commit_all() {
  put_setting(database_, next_id_key, std::to_string(directories_.next_id()));
  if (owners_) owners_->write();
  const auto commits = number_setting(database_, commits_key, 0) + 1;
  put_setting(database_, commits_key, std::to_string(commits));
  if (const std::uint64_t more = directories_.put_apart() - put_apart_before_; more > 0) {
    const auto before = static_cast<std::uint64_t>(number_setting(database_, put_apart_key, 0));
    put_setting(database_, put_apart_key, std::to_string(before + more));
    put_apart_before_ += more;
  }
  count_commit(database_);
  require_space(database_);
  transaction_->commit();
  finish_commit(static_cast<std::uint64_t>(commits));
}

// The next commit repeats what fails here.
void ScanTransaction::finish_commit(std::uint64_t commits) {
  const auto id = text_setting(database_, database_id_key);
  if (id) static_cast<void>(keep_commit_mark(database_.getFilename(), {*id, commits}));
  if (log_bytes(database_) >= log_bytes_max) write_back_log(database_);
}

void ScanTransaction::add_record(const ScanRecord& record) {
  const WalkFigures& figures = record.figures;
  SqliteStatement(database_, "INSERT INTO scans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                  scan_id_, to_ns(record.started_at), to_ns(record.finished_at), record.cycle.value,
                  record.walked_everything, record.partial, SqliteText{record.reason}, figures.dirs_walked,
                  figures.dirs_skipped, figures.dirs_changed, figures.dirs_new, figures.dirs_deleted,
                  record.files, record.bytes, record.errors, figures.audited, figures.missed)
      .run();
}

// Keeps the last scan that saw everything: its start is Usage::as_of.
void ScanTransaction::forget_old_records() {
  SqliteStatement(database_,
                  "DELETE FROM scans WHERE id <= ?1 - ?2 AND "
                  "id < ifnull((SELECT max(id) FROM scans WHERE walked_everything OR NOT partial), 0)",
                  scan_id_, records_kept)
      .run();
}

}  // namespace spoor::scanner
