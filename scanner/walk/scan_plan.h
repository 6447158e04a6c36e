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

// How far an unfinished scan that is resumed came on a drive: a cursor that descends with the walk.
//
// Plain data. Refers to the text of the place.
class ResumePoint {
 public:
  // Place: the path of the last directory that was finished in the deepest one that was open, or of the
  // latter and a slash if there was none. What comes before it in the order of a walk, and what is below it,
  // is done.
  static ResumePoint at(std::string_view place) { return {Relation::on_the_way, place}; }
  static ResumePoint done() { return {Relation::done, {}}; }
  ResumePoint() = default;  // nothing is done

  void descend(std::string_view name);

  // It was open: to be read again.
  bool is_on_the_way() const { return relation_ == Relation::on_the_way; }
  bool is_done() const { return relation_ == Relation::done; }

 private:
  enum class Relation { ahead, on_the_way, done };
  ResumePoint(Relation relation, std::string_view rest) : relation_(relation), rest_(rest) {}

  Relation relation_ = Relation::ahead;
  std::string_view rest_;  // of the place, below this directory
};

// What the plan knows of a directory beside what is stored of it: descends with the walk.
struct PlanCursor {
  tracker::DriveCursor marks;
  ResumePoint resumed;

  void descend(std::string_view name) {
    marks.descend(name);
    resumed.descend(name);
  }
};

// Decides which directories a scan reads. WalkPlanner knows when the times of a marked directory make listing
// it needless, and Walker when one that was opened is another than expected. No I/O.
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

  ScanPlan(const tracker::MarkSet& marks, bool full) : root_(marks), full_(full) {}

  // At the root of the drive with this identity, which is empty if it is not known.
  PlanCursor root(std::string_view drive, const ResumePoint& resumed = {}) const {
    return {tracker::DriveCursor(root_, drive), resumed};
  }

  // Of the directory to which `at` descended from root(). `inode` is the one found now; `above` is the reason
  // of the parent, nothing for the root, and for a directory that is done below one that is not.
  Reason reason(const PlanCursor& at, std::uint64_t inode, const std::optional<Known>& known,
                std::optional<Reason> above) const;

 private:
  const tracker::MarkCursor root_;
  const bool full_;
};

}  // namespace spoor::scanner
