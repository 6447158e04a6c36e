#include "scanner/store/usage_database.h"

#include <fmt/core.h>

#include <chrono>
#include <utility>

#include "base/number.h"
#include "scanner/database/checksum_vfs.h"
#include "scanner/database/database_files.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/store/database_schema.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::scanner {
namespace {

// Whether the database is permanently unusable, unlike one that could not be opened this time.
bool is_beyond_use(const base::Error& error) {
  return error.code == Errc::database_damaged || error.code == Errc::database_unusable;
}

base::WallTime from_ns(std::int64_t ns) { return base::WallTime(std::chrono::nanoseconds(ns)); }

// Commits are synced: a power cut must not undo results that a reader has seen.
void configure_for_writing(SqliteDatabase& database) {
  const std::string mode = database.text("PRAGMA journal_mode = WAL");
  database.exec("PRAGMA synchronous = FULL");
  database.exec("PRAGMA cache_size = -2048");             // KiB: a small scan looks at most pages once
  database.exec("PRAGMA wal_autocheckpoint = 0");         // finish_commit() does it
  database.exec("PRAGMA journal_size_limit = 67108864");  // the size of the log after a checkpoint
  // Freed pages need not be written. Without the write-ahead log, reserve_checksums() needs them written.
  if (mode == "wal") database.exec("PRAGMA secure_delete = OFF");
  // Also keeps the log, so that readers without permission to create it can open the database.
  sqlite3_db_config(database.handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
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

UsageDatabase::UsageDatabase(std::unique_ptr<SqliteDatabase> database) : database_(std::move(database)) {}

base::Result<UsageDatabase> UsageDatabase::open(const std::filesystem::path& file) {
  const auto noted = noted_damage(file);
  if (!noted) return noted.error();
  if (*noted) return base::Error(Errc::database_damaged, **noted);
  if (is_foreign(file, scan_database_id)) return foreign_error(file.native());
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    if (!mark) return mark.error();
    if (*mark && is_empty_file(file))
      return damage_error(file, "it is empty, but scans were committed to it");
    auto database = std::make_unique<SqliteDatabase>(
        file.native(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, checksum_vfs());
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
    SqliteTransaction transaction(*database->database_, SqliteTransaction::Kind::writing);
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
      SqliteDatabase replaced(file.native(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, checksum_vfs());
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
  if (is_foreign(file, scan_database_id)) return foreign_error(file.native());
  return guarded("open the tables", file.native(), [&]() -> base::Result<UsageDatabase> {
    const auto mark = read_commit_mark(file);
    if (!mark) return mark.error();
    auto database = std::make_unique<SqliteDatabase>(
        file.native(), SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, checksum_vfs());
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
                 [&] { return find_setting(*database_, own_marks_key).value_or(""); });
}

base::Result<std::optional<std::string>> UsageDatabase::setting(std::string_view key) {
  return guarded("read a setting", *database_, [&] { return find_setting(*database_, key); });
}

base::Result<> UsageDatabase::replace_setting(std::string_view key, std::string_view value) {
  return guarded("write a setting", *database_, [&] {
    SqliteTransaction transaction(*database_, SqliteTransaction::Kind::writing);
    put_setting(*database_, key, value);
    count_commit(*database_);
    transaction.commit();
  });
}

base::Result<std::size_t> UsageDatabase::start_level() {
  return guarded("read a setting", *database_, [&] {
    const std::string text = find_setting(*database_, start_level_key).value_or("");
    const std::size_t level = base::parse_number<std::size_t>(text).value_or(0);
    return level <= tracker::LevelSchedule::level_max ? level : 0;
  });
}

base::Result<std::optional<ScanRecord>> UsageDatabase::scan(std::uint64_t id) {
  return guarded("look up a scan", *database_, [&] {
    return SqliteStatement(*database_, std::string(select_scans) + "WHERE id = ?").find(read_record, id);
  });
}

base::Result<std::vector<ScanRecord>> UsageDatabase::scans(std::size_t count_max,
                                                           std::size_t reason_bytes_max) {
  return guarded("list the scans", *database_, [&] {
    return SqliteStatement(*database_, std::string(select_scans) + "ORDER BY id DESC LIMIT ?")
        .read_all(
            [&](const SqliteStatement& row) {
              ScanRecord record = read_record(row);
              if (record.reason.size() > reason_bytes_max)
                record.reason.replace(reason_bytes_max, std::string::npos, "...");
              return record;
            },
            count_max);
  });
}

base::Result<> UsageDatabase::merge_rows(std::uint64_t put_apart_min) {
  return guarded("merge the rows of directories", *database_, [&] {
    const auto put_apart = static_cast<std::uint64_t>(number_setting(*database_, put_apart_key, 0));
    if (put_apart == 0 || put_apart < put_apart_min) return;
    SqliteTransaction transaction(*database_, SqliteTransaction::Kind::writing);
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

}  // namespace spoor::scanner
