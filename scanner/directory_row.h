// What is kept of one directory.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace spoor::scanner {

// Sums end here: one that is as large stands for this much or more.
inline constexpr std::uint64_t sum_max = std::numeric_limits<std::uint64_t>::max();

constexpr std::uint64_t saturating_add(std::uint64_t one, std::uint64_t other) {
  return other > sum_max - one ? sum_max : one + other;
}

constexpr std::uint64_t saturating_multiply(std::uint64_t one, std::uint64_t other) {
  return other != 0 && one > sum_max / other ? sum_max : one * other;
}

// Of some set of non-directories. `files` counts names; the sizes of a file with several hard links count
// once in each directory that holds it (link_store.h has by how much the sums of a subtree are too large
// thereby).
struct Totals {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;      // apparent size; regular files only
  std::uint64_t allocated = 0;  // bytes taken on the drive
  std::int64_t mtime_ns = 0;    // the newest, of the files and of the directories that hold them

  // Sums up, to sum_max at most; the newest mtime wins.
  void add(const Totals& other);

  // Whether some sum is too large to be counted: nothing can be taken out of it any more.
  bool is_saturated() const { return files == sum_max || bytes == sum_max || allocated == sum_max; }

  friend bool operator==(const Totals&, const Totals&) = default;
};

enum class DirectoryState : std::uint8_t {
  ok = 0,
  // Could not be read when it was to be. Its totals are those of before, or zero, and what was known
  // of changes below it is used up: all of it is read once it can be.
  unread = 1,
  // Listed, but some files would not tell their size: its own totals are those of before.
  incomplete = 2,
  // Another file system is mounted here, which is not entered. What lies beneath can't be seen, so
  // all of it is read once the mount is gone.
  mount_point = 3,
};

// One row of the database. The root of a drive has the empty name.
struct DirectoryRow {
  std::string name;
  std::int64_t id = 0;      // what its children's rows name as their parent; 0 before it has one
  std::uint64_t inode = 0;  // as its parent's listing gave it; a drive's root: its own
  std::uint32_t birth = 0;  // its identity (directory_identity.h)
  DirectoryState state = DirectoryState::ok;
  std::uint64_t read_scan = 0;  // the scan that read it last; 0 before the first
  std::uint64_t signature = 0;  // of its own entries
  bool is_racy = false;         // Listing::is_racy of that signature
  // The same without its own times, which entries change that the rules ignore; 0: not known.
  std::uint64_t entries = 0;

  Totals own;      // its own files
  Totals subtree;  // its own and those of all directories below

  std::uint64_t directories = 0;   // below it: as many as there are rows below
  std::uint64_t pending = 0;       // unread or incomplete, in the subtree, itself included
  std::uint64_t mount_points = 0;  // in the subtree, itself included

  bool itself_pending() const {
    return state == DirectoryState::unread || state == DirectoryState::incomplete;
  }

  // Gives it a new state; the sums over the subtree follow.
  void set_state(DirectoryState to);

  // Drops what the sums hold of subdirectories, and takes `own` as its own.
  void restart_sums(const Totals& own_totals);

  // Adds a subdirectory, with all below it, to the sums.
  void add_child(const DirectoryRow& child);

  // Adds the sums of another row, which is no directory of its own.
  void add_sums(const DirectoryRow& sums);

  // Takes one out of the sums again, which must not be saturated. The newest mtime stays, be it this one's or
  // not.
  void remove_child(const DirectoryRow& child);

  friend bool operator==(const DirectoryRow&, const DirectoryRow&) = default;
};

}  // namespace spoor::scanner
