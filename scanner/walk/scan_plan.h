#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "scanner/store/directory_row.h"
#include "tracker/filter/mark_cursor.h"
#include "tracker/filter/mark_set.h"

namespace spoor::scanner {

// Why a directory is read, or that it is not.
enum class Reason {
  clean,            // Not read: what is stored of it and of all below it holds.
  marked,           // It may have changed, or something below it may have.
  tree_mark,        // It is in a marked subtree.
  below_a_reason,   // All below some directory above it is read.
  full,             // Everything is read.
  unknown,          // Nothing is stored of it.
  other_directory,  // What is stored is of another directory, which had its name.
  not_known_below,  // What was known of changes below it is used up: it was unread, or mounted over.
  left_below,       // It, or something below it, was left for this scan.
};

// Whether all below a directory is read as well, marked or not.
bool reads_all_below(Reason reason);

// Which directories a scan reads: the one place where that is decided. No I/O.
//
// Holds a reference to the marks. Immutable; thread-safe as long as the marks do not change.
class ScanPlan {
 public:
  // What is stored of a directory, as far as the plan needs it.
  struct Known {
    std::uint64_t inode = 0;
    bool all_below_dirty = false;  // state unread or mount_point
    bool left_below = false;       // something in the subtree, itself included, is not in state ok

    static Known of(const DirectoryRow& row);
  };

  ScanPlan(const tracker::MarkSet& marks, bool full);

  // At the root of the drive with this identity, which is empty if it is not known.
  tracker::DriveCursor root(std::string_view drive) const { return {root_, drive}; }

  // Of the directory to which `marks` descended from root(). `inode` is the one found now; `above` is the
  // reason of the parent, nothing for the root.
  Reason reason(const tracker::DriveCursor& marks, std::uint64_t inode, const std::optional<Known>& known,
                std::optional<Reason> above) const;

 private:
  const tracker::MarkCursor root_;
  const bool full_;
};

}  // namespace spoor::scanner
