#include "tracker/filter/mark_cursor.h"

#include <algorithm>

namespace spoor::tracker {
namespace {

std::string_view first_component(std::string_view path) { return path.substr(0, path.find('/')); }

}  // namespace

MarkCursor::MarkCursor(const MarkSet& marks)
    : marks_(&marks),
      below_(marks.tree_marks().begin()),
      below_end_(marks.tree_marks().end()),
      groups_(marks.groups()),
      covered_(marks.tree_marks().covers("")) {
  if (covered_) below_ = below_end_;
}

void MarkCursor::descend(std::string_view name) {
  hasher_.descend(name);
  if (leads_to_tree_mark()) descend_tree_marks(name);
  name_at_ += name.size() + 1;
  if (groups_ != 0) groups_ = marks_->groups_that_may_contain(hasher_.hash(), groups_);
}

void MarkCursor::descend_tree_marks(std::string_view name) {
  const auto from_name = [this](const std::string& mark) { return std::string_view(mark).substr(name_at_); };
  below_ = std::partition_point(
      below_, below_end_, [&](const std::string& mark) { return first_component(from_name(mark)) < name; });
  covered_ = below_ != below_end_ && from_name(*below_) == name;
  if (covered_) ++below_;
  below_end_ = std::partition_point(
      below_, below_end_, [&](const std::string& mark) { return first_component(from_name(mark)) == name; });
}

}  // namespace spoor::tracker
