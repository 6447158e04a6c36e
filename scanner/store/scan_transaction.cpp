#include "scanner/store/scan_transaction.h"

#include <fmt/core.h>

#include <array>
#include <boost/endian/conversion.hpp>
#include <filesystem>

#include "scanner/database/sqlite.h"
#include "scanner/store/database_schema.h"

namespace spoor::scanner {
namespace {

constexpr std::uint64_t records_kept = 10'000;
constexpr const char* database_id_key = "feed_id";
constexpr const char* commits_key = "commits";
constexpr const char* file_number_key = "file_number";
constexpr const char* files_since_key = "files_since";
constexpr int checkpoint_timeout_ms = 1'000;
constexpr std::uint64_t log_bytes_max = std::uint64_t{1} << 20U;  // a commit empties a log of this size

std::int64_t to_ns(base::WallTime time) { return time.time_since_epoch().count(); }

// SQLite's change counter in the file itself, below the log.
std::uint32_t file_number(SqliteDatabase& database) {
  sqlite3_file* file = nullptr;
  sqlite3_file_control(database.handle(), "main", SQLITE_FCNTL_FILE_POINTER, static_cast<void*>(&file));
  std::array<unsigned char, 4> counter{};
  const int code = file->pMethods->xRead(file, counter.data(), counter.size(), 24);
  const bool is_read = code == SQLITE_OK || code == SQLITE_IOERR_SHORT_READ;  // zeros, where it is too short
  if (!is_read) throw SqliteError("cannot read its header", code);
  return boost::endian::load_big_u32(counter.data());
}

// Nothing if it cannot be looked at.
std::optional<std::uint64_t> log_bytes(SqliteDatabase& database) {
  std::error_code failure;
  const std::uint64_t bytes = std::filesystem::file_size(database.file() + "-wal", failure);
  return failure ? std::nullopt : std::optional(bytes);
}

}  // namespace

std::string identity_key(std::int64_t drive) { return fmt::format("drive_identity {}", drive); }
std::string gap_key(std::int64_t drive) { return fmt::format("drive_gap {}", drive); }
std::string stamp_key(std::int64_t drive) { return fmt::format("drive_stamp {}", drive); }
std::string audit_key(std::int64_t drive) { return fmt::format("audit {}", drive); }

ScanTransaction::ScanTransaction(SqliteDatabase& database)
    : database_(database),
      transaction_(std::in_place, database, SqliteTransaction::Kind::writing),
      scan_id_(static_cast<std::uint64_t>(database.number("SELECT ifnull(max(id), 0) FROM scans")) + 1),
      directories_(database, number_setting(database, next_id_key, 1)),
      changes_(database, scan_id_),
      links_(database) {}

bool ScanTransaction::keep_files(bool wanted) {
  const bool were_kept = find_setting(database_, files_since_key).has_value();
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
}

bool ScanTransaction::keep_history(bool wanted) {
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
}

void ScanTransaction::expect_many_changes() {
  database_.exec("PRAGMA cache_size = -65536");
  erase_setting(database_, put_apart_key);
  directories_.merge();
}

// What a scan of a Spoor without them changed is not known.
bool ScanTransaction::keep_owners(std::optional<std::uint32_t> depth) {
  const auto kept = find_setting(database_, owners_key);
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
}

std::vector<StoredDrive> ScanTransaction::drives() {
  return SqliteStatement(database_, "SELECT id, path FROM drives ORDER BY path")
      .read_all(
          [](const SqliteStatement& row) { return StoredDrive{row.number(0), std::string(row.blob(1))}; });
}

StoredDrive ScanTransaction::add_drive(const std::string& path) {
  SqliteStatement(database_, "INSERT INTO drives(path) VALUES(?)", path).run();
  return StoredDrive{sqlite3_last_insert_rowid(database_.handle()), path};
}

void ScanTransaction::forget_drive(const StoredDrive& drive) {
  SqliteStatement(database_, "DELETE FROM drives WHERE id = ?", drive.id).run();
  for (const auto key_of : {identity_key, gap_key, stamp_key, audit_key})
    erase_setting(database_, key_of(drive.id));  // SQLite may reuse the id
}

void ScanTransaction::set_peers(const tracker::PeerBook& book) {
  database_.exec("DELETE FROM peers");
  SqliteStatement insert(database_,
                         "INSERT INTO peers(name, instance, cycle, home, standing, silent_ms, run) "
                         "VALUES(?, ?, ?, ?, ?, ?, ?)");
  for (const auto& [id, peer] : book) {
    const std::string instance = id.instance.to_string();
    insert.run(SqliteText{id.name}, SqliteText{instance}, peer.cycle.value, SqliteText{peer.home},
               static_cast<std::uint64_t>(peer.standing), static_cast<std::int64_t>(peer.silent.count()),
               peer.run);
  }
}

bool ScanTransaction::commit_so_far() {
  try {
    commit_all();
  } catch (const SqliteError& exception) {
    if (exception.code() != SQLITE_BUSY) throw;
    return false;  // without a write-ahead log
  }
  transaction_.reset();
  transaction_.emplace(database_, SqliteTransaction::Kind::writing);
  return true;
}

void ScanTransaction::commit(const ScanRecord& record) {
  if (owners_depth_) put_setting(database_, owners_key, owners_setting({*owners_depth_, scan_id_}));
  add_record(record);
  forget_old_records();
  commit_all();
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
  const auto id = find_setting(database_, database_id_key);
  if (id) static_cast<void>(keep_commit_mark(database_.file(), {*id, commits}));
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

void check_commits(SqliteDatabase& database, const std::optional<CommitMark>& mark) {
  const std::int64_t at_commit = number_setting(database, file_number_key, 0);
  if (file_number(database) < at_commit)  // read after it: another process may write back the log
    throw SqliteError("its log is that of a newer one: this is an older copy", SQLITE_CORRUPT);
  if (!mark || find_setting(database, database_id_key) != mark->database) return;
  if (static_cast<std::uint64_t>(number_setting(database, commits_key, 0)) >= mark->number) return;
  throw SqliteError("its last commit is missing: the log was damaged, or this is an older copy",
                    SQLITE_CORRUPT);
}

// SQLite would apply the log to an older copy in the place of the file. So each commit has the number of the
// file below the log; it gets a larger one when the log is written back, as SQLite counts a commit that
// writes to the header.
void count_commit(SqliteDatabase& database) {
  put_setting(database, file_number_key, std::to_string(file_number(database)));
  const std::int64_t version = database.number("PRAGMA user_version");
  database.exec(fmt::format("PRAGMA user_version = {}", version));
}

void write_back_log(SqliteDatabase& database) {
  database.set_busy_timeout(checkpoint_timeout_ms);  // for readers
  // sqlite3_wal_checkpoint_v2() does nothing on a connection that has not read yet. Best effort.
  sqlite3_exec(database.handle(), "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  database.set_busy_timeout(busy_timeout_ms);
}

}  // namespace spoor::scanner
