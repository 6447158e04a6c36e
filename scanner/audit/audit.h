// Reads directories that have no mark, to find changes without a mark (docs/scanner.md, "Audit").
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/store/directory_store.h"
#include "scanner/walk/scan_drives.h"
#include "scanner/walk/walk_context.h"
#include "tracker/filter/mark_cursor.h"
#include "tracker/filter/mark_set.h"

namespace spoor::scanner {

// Logical paths of what the walk is to read again.
struct DifferingPaths {
  std::set<std::string> directories;  // themselves
  std::set<std::string> trees;        // with all that is below

  bool empty() const { return directories.empty() && trees.empty(); }
  void merge(DifferingPaths other) {
    directories.merge(other.directories);
    trees.merge(other.trees);
  }
  tracker::MarkSet marks() const;
};

// Compares what is stored of directories with what is on the drive. Changes nothing: the walk reads again
// what differs.
//
// Not thread-safe.
class Audit {
 public:
  // A change is not called missed if it was made so shortly before the scan: its mark may be on the way.
  static constexpr std::chrono::minutes grace{1};
  static constexpr std::size_t missed_kept_max = 1000;
  static constexpr std::size_t missed_bytes_max = std::size_t{4} << 20U;
  // The audit stops there, and continues in the next scan.
  static constexpr std::size_t differing_bytes_max = std::size_t{64} << 20U;
  struct Outcome {
    std::uint64_t visited = 0;              // those included that the walk reads
    std::uint64_t audited = 0;              // read
    std::uint64_t missed = 0;               // differ, though no mark covers that
    std::vector<std::string> missed_paths;  // logical; the first ones
    DifferingPaths differing;               // missed or not
    std::optional<std::string> last_path;   // visited on this drive; nothing for none
    bool is_at_end = false;                 // of the drive
    bool is_left_to_walk = false;           // the walk reads all of the drive, if it can: nothing was visited
  };

  // `started`: when the audit of the scan began; no directory is read from `until` on. `context` must outlive
  // it.
  Audit(WalkContext& context, base::SteadyTime started, base::SteadyTime until)
      : context_(context), keep_from_(started + context.options.commit_every), until_(until) {}

  // Visits at most `count` directories behind `after`, or from the root on, until the time is over; what lies
  // below a directory of which the walk reads everything is visited with it, at once. Fails where the
  // database does, or with Errc::interrupted.
  base::Result<Outcome> run(const KnownDrive& drive, const std::optional<std::string>& after,
                            std::uint64_t count);

 private:
  // A directory on the way to the one that is visited, that one included.
  struct Level {
    Level(const DirectoryRow& row, std::size_t bytes, const tracker::DriveCursor& cursor)
        : path_bytes(bytes), marks(cursor), inode(row.inode), birth(row.birth) {}

    std::size_t path_bytes = 0;
    tracker::DriveCursor marks;
    std::uint64_t inode = 0;  // as stored
    std::uint32_t birth = 0;
    bool is_walked = false;     // marks lead the walk to it
    bool is_uncertain = false;  // it may be another directory than the stored one, by a change that is marked
    bool is_left = false;       // all below it is left to the walk
    bool is_counted = false;    // it differs, and has been counted
    std::optional<DirectoryHandle> handle;
  };

  base::Result<bool> has_time();
  base::Result<> enter_ancestors(DirectoryRow row, std::string_view after);
  base::Result<> visit_rows(StoredTree& tree, std::uint64_t count);
  Level& enter(const DirectoryRow& row, std::string_view path);
  base::Result<> visit(const DirectoryRow& row, const std::string& path);
  bool open(const std::string& path);
  bool open_level(std::size_t number, const std::string& path);
  bool is_the_stored_one(std::size_t number, const DirectoryHandle& handle, const std::string& path);
  void leave(std::size_t number);
  void differs_without_count(std::size_t number, const std::string& path);
  void gone(std::size_t number, const std::string& path);
  void differs(Level& level, const std::string& path, std::int64_t changed_ns);
  void walk_again(const std::string& path);
  bool may_be_on_the_way(std::int64_t changed_ns) const;
  base::Result<bool> may_be_a_link(const DirectoryRow& row, const Listing& listing, std::string_view path);

  WalkContext& context_;
  const base::SteadyTime keep_from_;
  const base::SteadyTime until_;
  bool is_long_ = false;
  std::int64_t drive_ = 0;  // that is visited
  std::string identity_;    // of that drive
  std::deque<Level> open_;  // the root first; those far above are closed
  Outcome outcome_;
  std::size_t missed_bytes_ = 0;  // of its paths
  std::size_t differing_bytes_ = 0;
};

}  // namespace spoor::scanner
