// Where a total comes from: a walk stores the sums of each directory of a drive (store/directory_row.h).
// These are added up here over the drives, for queries, the history and limits.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "scanner/database/sqlite.h"
#include "scanner/history/history_point.h"
#include "scanner/history/history_store.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/directory_store.h"
#include "scanner/store/link_corrections.h"

namespace spoor::scanner {

// What was known of the directories at an earlier scan.
struct KnownDirectories {
  std::int64_t next_id = 0;              // rows from this id on are new since then
  std::set<std::int64_t> unread_drives;  // their root could not be read
};

// The totals of one logical directory, over all drives that have it. A file with several hard links counts
// once on each drive.
struct DirectoryTotal {
  // A row that has children.
  struct Row {
    std::int64_t drive = 0;
    std::int64_t id = 0;
  };

  std::string path = {};
  bool is_there = false;  // on some drive; otherwise the figures are zero
  HistoryFigures figures = {};
  std::int64_t mtime_ns = 0;  // the newest in the subtree
  bool complete = true;       // as HistoryPoint::complete
  bool unread = false;        // as HistoryPoint::unread
  bool all_read = true;       // not unread, and no drive's root is: otherwise what is stored may be outdated
  bool is_new = true;         // no drive has it for which it may be older than KnownDirectories
  std::vector<HistoryIdentity> identities = {};  // by drive; those of mount points are unknown
  std::vector<Row> parents = {};                 // of its children
};

// Totals by path. Consecutive paths of the same directory are found fastest.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it, and in which
// no directory may be written meanwhile. Failures are SqliteError.
class DirectoryTotals {
 public:
  explicit DirectoryTotals(SqliteDatabase& database, KnownDirectories known = {});

  // The drives whose root could not be read.
  const std::set<std::int64_t>& unread_drives() const { return unread_drives_; }

  DirectoryTotal find(std::string_view path);

  // Calls `visit` for the directory, if it is there, and for those up to `depth_max` levels below it, in the
  // order of a walk, until it returns false.
  void for_each(const DirectoryTotal& top, std::uint64_t depth_max,
                const std::function<bool(const DirectoryTotal& total, std::uint64_t depth)>& visit);

 private:
  friend class ChildTotals;

  // The row of a directory above the one that was found last.
  struct Above {
    std::size_t path_bytes = 0;
    std::int64_t id = 0;
    bool unread = false;  // it, or one above it except the root
  };
  struct DriveRows {
    std::int64_t drive = 0;
    std::string path = {};          // that was looked up last
    std::vector<Above> above = {};  // its ancestors, from the root down
  };

  std::optional<DirectoryRow> find_on(DriveRows& rows, std::string_view path);
  void add(DirectoryTotal& total, std::int64_t drive, const DirectoryRow& row);
  void finish(DirectoryTotal& total) const;

  const KnownDirectories known_;
  std::vector<DriveRows> drives_;
  std::set<std::int64_t> unread_drives_;
  std::optional<LinkCorrections> links_;  // nothing without corrections
  DirectoryTables directories_;
};

// The totals of the children of a directory, by name. As DirectoryTotals, which must outlive it.
class ChildTotals {
 public:
  ChildTotals(DirectoryTotals& totals, const DirectoryTotal& parent);

  // The next name; null after the last one. Valid until the next call.
  const std::string* peek() { return rows_.peek(); }
  // Of that name, or of one before it, which is not there.
  DirectoryTotal take(const std::string& name);
  // Nothing after the last one.
  std::optional<DirectoryTotal> next();

 private:
  DirectoryTotals& totals_;
  const std::string path_;
  const bool unread_;
  const std::vector<DirectoryTotal::Row> parents_;
  JoinedChildren rows_;
};

}  // namespace spoor::scanner
