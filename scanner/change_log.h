// What a scan found changed, as it is kept for the consumers of the change feed.
#pragma once

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/error.h"

namespace spoor::scanner {

// Bits: one scan may find several of one directory, such as another one in its place.
enum class Change : std::uint8_t {
  created = 1,
  changed = 2,
  deleted = 4,  // with all below it, which is not named
};

// Writes the changes of one scan. Every failure is Errc::database_failed.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class ChangeLog {
 public:
  // The changes of so many scans are kept, whatever they take.
  static constexpr std::uint64_t scans_kept = 16;

  // The first scan of a database names nothing: whoever begins to read it takes everything anyway.
  ChangeLog(SQLite::Database& database, std::uint64_t scan);

  // `path` is the logical one, "" the root of the drive.
  base::Result<> add(std::int64_t drive, std::string_view path, Change change);

  // From now on there are changes of files, too: their table is there.
  void keep_files();

  // Of one in the directory of that id, which add() calls changed.
  base::Result<> add_file(std::int64_t directory, std::string_view name, Change change);

  // Nothing that was kept, and nothing that is still found in this scan, tells all of what changed: whoever
  // reads has to take everything. For a change of the set of drives.
  base::Result<> reset();

  // After the last change: forgets what is older than `scans_kept` and was read by all, `unread` being the
  // oldest scan that somebody is to read; and what is more than `entries_max`, the oldest first.
  base::Result<> finish(std::optional<std::uint64_t> unread, std::uint64_t entries_max);

 private:
  void forget_until(std::uint64_t scan);

  SQLite::Database& database_;
  SQLite::Statement insert_;
  std::optional<SQLite::Statement> insert_file_;  // where files are kept
  const std::uint64_t scan_;
  std::uint64_t entries_ = 0;
  bool is_off_ = false;
};

}  // namespace spoor::scanner
