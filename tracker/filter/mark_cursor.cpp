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
      any_in_filters_(std::any_of(marks.filters().begin(), marks.filters().end(),
                                  [](const BloomFilter& filter) { return filter.bits_set() != 0; })),
      covered_(marks.tree_marks().covers("")) {
  if (covered_) below_ = below_end_;
}

void MarkCursor::descend(std::string_view name) {
  hasher_.descend(name);
  if (leads_to_tree_mark()) descend_tree_marks(name);
  name_at_ += name.size() + 1;
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

bool MarkCursor::in_filter() const {
  if (at_root()) return any_in_filters_ || !marks_->tree_marks().empty();
  return any_in_filters_ && marks_->filters_may_contain(hasher_.hash());
}

}  // namespace spoor::tracker
