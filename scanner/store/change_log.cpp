#include "scanner/store/change_log.h"

#include <algorithm>

namespace spoor::scanner {
ChangeLog::ChangeLog(SqliteDatabase& database, std::uint64_t scan)
    : database_(database),
      insert_(database,
              "INSERT INTO changes(scan, drive, path, change) VALUES(?1, ?2, ?3, ?4) "
              "ON CONFLICT DO UPDATE SET change = change | excluded.change"),
      scan_(scan),
      is_off_(scan == 1) {}

void ChangeLog::add(std::int64_t drive, std::string_view path, Change change) {
  if (is_off_) return;
  insert_.run(scan_, drive, path, static_cast<int>(change));
  ++entries_;
}

void ChangeLog::keep_files() {
  insert_file_.emplace(database_,
                       "INSERT INTO file_changes(scan, directory, name, change) VALUES(?1, ?2, ?3, ?4) "
                       // An unfinished scan may have found another change of the file.
                       "ON CONFLICT DO UPDATE SET change = CASE WHEN excluded.change = 4 THEN 4 "
                       "WHEN change = 1 THEN 1 ELSE 2 END");
}

void ChangeLog::add_file(std::int64_t directory, std::string_view name, Change change) {
  if (is_off_) return;
  insert_file_->run(scan_, directory, name, static_cast<int>(change));
  ++entries_;
}

void ChangeLog::resume() {
  const auto count = [&](const char* text) {
    entries_ += static_cast<std::uint64_t>(SqliteStatement(database_, text).find_number(scan_).value());
  };
  count("SELECT count(*) FROM changes WHERE scan = ?1");
  if (insert_file_) count("SELECT count(*) FROM file_changes WHERE scan = ?1");
}

void ChangeLog::finish(std::optional<std::uint64_t> unread, std::uint64_t entries_max) {
  if (is_off_) return forget_until(scan_);
  SqliteStatement(database_, "INSERT INTO feed(scan, entries) VALUES(?, ?)", scan_, entries_).run();
  const std::uint64_t old = scan_ > scans_kept ? scan_ - scans_kept : 0;
  // The last scan beyond `entries_max`, read or not.
  const auto surplus =
      SqliteStatement(database_,
                      "SELECT ifnull(max(scan), 0) FROM (SELECT scan, sum(entries) OVER (ORDER BY scan "
                      "DESC) AS newer FROM feed) WHERE newer > ?1 AND scan <= ?2")
          .find_number(entries_max, old);
  forget_until(std::max(std::min(old, unread.value_or(scan_) - 1), static_cast<std::uint64_t>(*surplus)));
}

void ChangeLog::forget_until(std::uint64_t scan) {
  const auto forget = [&](const char* text) { SqliteStatement(database_, text, scan).run(); };
  for (const char* const text : {"DELETE FROM changes WHERE scan <= ?1", "DELETE FROM feed WHERE scan <= ?1",
                                 "UPDATE settings SET value = CAST(max(CAST(value AS INTEGER), ?1) AS TEXT) "
                                 "WHERE key = 'feed_since'"}) {
    forget(text);
  }
  if (insert_file_) forget("DELETE FROM file_changes WHERE scan <= ?1");
}

}  // namespace spoor::scanner
