// The changes that a scan found, stored for the consumers of the change feed.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "scanner/database/sqlite.h"

namespace spoor::scanner {

// Bits: one scan may find several of one directory; a replaced one is both deleted and created.
enum class Change : std::uint8_t {
  created = 1,
  changed = 2,
  deleted = 4,  // with everything below it, which is not listed
};

// Writes the changes of one scan. Failures are SqliteError.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it.
class ChangeLog {
 public:
  // The changes of this many scans are kept, regardless of their number.
  static constexpr std::uint64_t scans_kept = 16;

  // The first scan of a database records no changes: a new consumer reads everything anyway.
  ChangeLog(SqliteDatabase& database, std::uint64_t scan);

  // `path` is the logical one, "" the root of the drive.
  void add(std::int64_t drive, std::string_view path, Change change);

  // Enables add_file(); the table of file changes must exist.
  void keep_files();

  // Records a change of a file in the directory of this id, which add() records as changed. Requires
  // keep_files().
  void add_file(std::int64_t directory, std::string_view name, Change change);

  // Drops all changes in finish(), and records no more in this scan: every consumer has to read everything.
  // For a change of the set of drives.
  void reset() { is_off_ = true; }
  bool is_reset() const { return is_off_; }

  // A scan of this number was begun before, and has committed some. After keep_files(), if files are stored.
  void resume();

  // Call after the last change. Deletes the changes of scans older than `scans_kept` that every consumer has
  // read (`unread` is the oldest scan that a consumer has still to read), and of those older scans also the
  // oldest beyond `entries_max` entries.
  void finish(std::optional<std::uint64_t> unread, std::uint64_t entries_max);

 private:
  void forget_until(std::uint64_t scan);

  SqliteDatabase& database_;
  SqliteStatement insert_;
  std::optional<SqliteStatement> insert_file_;  // if files are stored
  const std::uint64_t scan_;
  std::uint64_t entries_ = 0;
  bool is_off_ = false;
};

}  // namespace spoor::scanner
