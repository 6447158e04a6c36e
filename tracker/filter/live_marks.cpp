#include "tracker/filter/live_marks.h"

#include <algorithm>
#include <utility>

namespace spoor::tracker {

bool LiveMarks::View::may_contain(std::string_view path, const PathHash& hash) const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [&](const auto& filter) { return filter->may_contain(hash); }) ||
         trees_->covers(path) || trees_->has_below(path);
}

MarkSet LiveMarks::View::copy() const {
  MarkSet marks;
  for (const auto& filter : filters_) marks.add_filter(filter->copy());
  marks.set_trees(*trees_);
  return marks;
}

LiveMarks::LiveMarks(const MarkSet& marks, const LevelSchedule& levels, bool is_replay)
    : trees_(std::make_shared<TreeMarks>(marks.tree_marks())) {
  for (const BloomFilter& filter : marks.filters()) filters_.push_back(std::make_shared<LiveFilter>(filter));
  if (filters_.empty()) return;
  newest_level_ = levels.level_of(filters_.back()->shape());
  takes_marks_ = is_replay || newest_level_;
}

bool LiveMarks::has(BloomShape shape) const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [&](const auto& filter) { return filter->shape() == shape; });
}

bool LiveMarks::add_tree(std::string_view path) { return !trees_->covers(path) && own_trees().insert(path); }

std::vector<std::string> LiveMarks::bound_trees() {
  return trees_->exceeds_bound() ? own_trees().bound() : std::vector<std::string>();
}

TreeMarks& LiveMarks::own_trees() {
  if (std::exchange(trees_lent_, false)) trees_ = std::make_shared<TreeMarks>(*trees_);
  return *trees_;
}

std::uint64_t LiveMarks::memory_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& filter : filters_) bytes += filter->shape().byte_count();
  return bytes;
}

bool LiveMarks::may_contain(std::string_view path, const PathHash& hash) const {
  return knows(hash) || trees_->covers(path) || trees_->has_below(path);
}

MarkSetFigures LiveMarks::figures(std::uint64_t uncounted) const {
  std::vector<MarkSetFigures::Filter> filters;
  filters.reserve(filters_.size());
  for (const auto& filter : filters_) filters.push_back({filter->shape(), filter->bits_counted()});
  if (!filters.empty()) filters.back().bits_set += uncounted;
  return MarkSetFigures::of(filters);
}

LiveMarks::View LiveMarks::view() const {
  View view;
  view.filters_.assign(filters_.begin(), filters_.end());
  view.trees_ = trees_;
  trees_lent_ = true;
  return view;
}

void LiveMarks::clear() {
  filters_.clear();
  newest_level_.reset();
  takes_marks_ = false;
  trees_ = std::make_shared<TreeMarks>();
  trees_lent_ = false;
}

}  // namespace spoor::tracker
