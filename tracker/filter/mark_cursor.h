#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "tracker/filter/hash.h"
#include "tracker/filter/mark_set.h"

namespace spoor::tracker {

// A position in the namespace for lookups in a set of marks. descend() moves to a child: its cost depends on
// the child's name and the number of groups, not on the depth; tree marks are searched only while some are
// below. Copy the cursor to descend.
//
// A path is marked together with all directories above it, so a group that does not contain one of these has
// no mark of the path: it is not asked again.
//
// The marks must outlive the cursor and must not change. Not thread-safe.
class MarkCursor {
 public:
  // At the root. Reads all filters completely; copies reuse the result.
  explicit MarkCursor(const MarkSet& marks);

  // Moves to the child of this name, which is one component.
  void descend(std::string_view name);

  // Whether some filter may contain the path. For the root: whether there is any mark, since few marks add
  // the root itself to a filter.
  bool in_filter() const { return groups_ != 0 || (at_root() && !marks_->tree_marks().empty()); }

  // Whether the path has a tree mark or is below one.
  bool covered() const { return covered_; }

  // Whether a tree mark is strictly below the path.
  bool leads_to_tree_mark() const { return below_ != below_end_; }

  // Whether the path or something below it may be marked.
  bool may_be_dirty() const { return covered() || leads_to_tree_mark() || in_filter(); }

 private:
  bool at_root() const { return name_at_ == 0; }
  void descend_tree_marks(std::string_view name);

  const MarkSet* marks_;
  PathHasher hasher_;
  // The tree marks strictly below the path; in each, the next component begins at `name_at_`.
  TreeMarks::Iterator below_;
  TreeMarks::Iterator below_end_;
  std::size_t name_at_ = 0;
  MarkSet::Groups groups_;  // that may contain the path and all above it
  bool covered_;
};

// A mark may name the one drive that it is for: its path is below this component and the id of the drive
// (tracker/storage/drive_registry.h). No other drive is read for it.
inline constexpr std::string_view drive_marks_top = ".spoor:";

// Empty if the drive has no id that can be a component, or the path would be too long: then a mark names
// none.
std::string drive_mark_path(std::string_view drive, std::string_view path);

// A position on one drive: of the marks for every drive, and of those that name this one.
class DriveCursor {
 public:
  // `root`: of the marks. `drive`: its id; empty: not known, and each mark that names any drive is for it.
  DriveCursor(const MarkCursor& root, std::string_view drive);

  void descend(std::string_view name) {
    all_.descend(name);
    own_.descend(name);
  }
  bool in_filter() const { return all_.in_filter() || own_.in_filter(); }
  bool covered() const { return is_covered_ || all_.covered() || own_.covered(); }
  bool leads_to_tree_mark() const { return all_.leads_to_tree_mark() || own_.leads_to_tree_mark(); }
  bool may_be_dirty() const { return is_covered_ || all_.may_be_dirty() || own_.may_be_dirty(); }

 private:
  MarkCursor all_;
  MarkCursor own_;
  bool is_covered_ = false;
};

}  // namespace spoor::tracker
