#pragma once

#include <cstddef>
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

}  // namespace spoor::tracker
