#pragma once

#include <cstddef>
#include <string_view>

#include "tracker/hash.h"
#include "tracker/mark_set.h"

namespace spoor::tracker {

// Stands at a path, and says what a set of marks knows of it. Goes down a tree name by name: a child
// costs its own name, however deep it lies, and a look at the tree marks only while some lie below.
// Copy it to descend.
//
// Refers to the marks, which must outlive it and stay as they are. Not thread-safe.
class MarkCursor {
 public:
  // At the root. Looks at all of the filters, once for all copies.
  explicit MarkCursor(const MarkSet& marks);

  // Goes down to the child of this name, which is one component.
  void descend(std::string_view name);

  // Whether some filter may contain the path. Hardly any mark adds the root to a filter, since it is
  // above them all: it is in one if there is any mark at all.
  bool in_filter() const;

  // Whether the path has a tree mark or lies below one.
  bool covered() const { return covered_; }

  // Whether a tree mark lies strictly below.
  bool leads_to_tree_mark() const { return below_ != below_end_; }

  // Any of these: something at the path or below it may be marked.
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
  bool any_in_filters_;
  bool covered_;
};

}  // namespace spoor::tracker
