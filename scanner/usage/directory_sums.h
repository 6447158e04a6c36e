#pragma once

#include <cstddef>
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

// One logical directory, summed over all drives that have it.
struct DirectorySum {
  HistoryFigures figures;
  std::vector<HistoryIdentity> identities;  // by drive; those of mount points are unknown
  bool complete = true;                     // as HistoryPoint::complete
  bool unread = false;                      // as HistoryPoint::unread
  bool is_new = true;                       // no drive has it for which it may be older than KnownDirectories
};

// Sums of the stored directories, by path. Consecutive paths of the same directory are found fastest.
//
// Not thread-safe. Works in the transaction that is open on the database, which must outlive it, and in which
// no directory may be written meanwhile. Failures are SqliteError.
class DirectorySums {
 public:
  explicit DirectorySums(SqliteDatabase& database, KnownDirectories known = {});

  // The drives whose root could not be read.
  const std::set<std::int64_t>& unread_drives() const { return unread_drives_; }

  // Nothing if no drive has the directory.
  std::optional<DirectorySum> find(std::string_view path);

  // Calls `visit` for each directory up to `depth` levels below the root, once, each after those above it.
  // Stops once it returns false.
  void for_each(std::uint32_t depth, const std::function<bool(const std::string&)>& visit);

 private:
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

  const KnownDirectories known_;
  std::vector<DriveRows> drives_;
  std::set<std::int64_t> unread_drives_;
  std::optional<LinkCorrections> links_;  // nothing without corrections
  DirectoryTables directories_;
};

}  // namespace spoor::scanner
