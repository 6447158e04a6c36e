#include "tracker/filter/mark_set.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace spoor::tracker {

namespace {

// Approximately a string, its reference count and the pointer to it.
constexpr std::uint64_t tree_mark_bytes = 100;

std::uint64_t bytes_of(const TreeMarks& marks) { return marks.size() * tree_mark_bytes + marks.bytes(); }

}  // namespace

const BloomFilter* MarkSet::filter_of(BloomShape shape, std::size_t group) const {
  for (std::size_t at = 0; at < filters_.size(); ++at) {
    if (groups_[at] == group && filters_[at].shape() == shape) return &filters_[at];
  }
  return nullptr;
}

BloomFilter* MarkSet::own_filter_of(BloomShape shape, std::size_t group) {
  return const_cast<BloomFilter*>(filter_of(shape, group));  // of this set, which is not const
}

bool MarkSet::add(const PathHash& hash, BloomShape shape) {
  BloomFilter* filter = own_filter_of(shape, 0);
  if (filter == nullptr) {
    groups_.push_back(0);
    filter = &filters_.emplace_back(shape);
  }
  return filter->add(hash);
}

template <class Filter>
void MarkSet::merge_or_append(Filter&& filter, std::size_t group) {
  assert(group < groups_max);
  if (BloomFilter* own = own_filter_of(filter.shape(), group)) {
    own->merge(filter);
  } else {
    groups_.push_back(static_cast<std::uint8_t>(group));
    filters_.push_back(std::forward<Filter>(filter));
  }
}

void MarkSet::add_filter(const BloomFilter& filter, std::size_t group) { merge_or_append(filter, group); }
void MarkSet::add_filter(BloomFilter&& filter, std::size_t group) {
  merge_or_append(std::move(filter), group);
}

void MarkSet::merge(const MarkSet& other) {
  for (const BloomFilter& filter : other.filters_) add_filter(filter);
  tree_marks_.merge(other.tree_marks_);
}

bool MarkSet::try_add_apart(const MarkSet& other, std::uint64_t bytes_max) {
  const std::uint64_t bytes = dense_bytes() + bytes_of(tree_marks_) + bytes_of(other.tree_marks_);
  const std::size_t count = group_count();
  const std::uint64_t apart_bytes_max = std::min(bytes_max, groups_bytes_max);
  const bool fits_apart =
      count == 0 || (count < groups_max && bytes + other.dense_bytes() <= apart_bytes_max &&
                     filters_.size() + other.filters_.size() <= filters_apart_max);
  const std::size_t group = fits_apart ? count : merged_apart_ % count;
  std::uint64_t added = 0;
  auto filters = static_cast<std::size_t>(std::ranges::count(groups_, group));
  for (const BloomFilter& filter : other.filters_) {
    if (filter_of(filter.shape(), group) != nullptr) continue;
    added += filter.shape().byte_count();
    ++filters;
  }
  if (bytes + added > bytes_max || filters > group_filters_max) return false;
  if (!fits_apart) ++merged_apart_;
  for (const BloomFilter& filter : other.filters_) add_filter(filter, group);
  tree_marks_.merge(other.tree_marks_);
  return true;
}

std::uint64_t MarkSet::dense_bytes() const {
  return std::accumulate(
      filters_.begin(), filters_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const BloomFilter& filter) { return sum + filter.shape().byte_count(); });
}

std::size_t MarkSet::group_count() const {
  return groups_.empty() ? 0 : std::size_t{*std::ranges::max_element(groups_)} + 1;
}

MarkSet MarkSet::group(std::size_t number) const {
  MarkSet marks;
  for (std::size_t at = 0; at < filters_.size(); ++at) {
    if (groups_[at] == number) marks.add_filter(filters_[at]);
  }
  return marks;
}

std::size_t MarkSet::shape_count() const {
  std::set<BloomShape> shapes;
  for (const BloomFilter& filter : filters_) shapes.insert(filter.shape());
  return shapes.size();
}

MarkSet MarkSet::packed() const {
  MarkSet marks;
  marks.filters_.reserve(filters_.size());
  for (const BloomFilter& filter : filters_) marks.filters_.push_back(filter.packed());
  marks.groups_ = groups_;
  marks.tree_marks_ = tree_marks_;
  return marks;
}

void MarkSet::unpack(std::uint64_t filter_bytes_max) {
  for (BloomFilter& filter : filters_) {
    if (filter.shape().byte_count() <= filter_bytes_max) filter.make_dense();
  }
}

std::uint64_t MarkSet::memory_bytes() const { return bytes_of(tree_marks_) + filter_bytes(); }

std::uint64_t MarkSet::filter_bytes() const {
  return std::accumulate(
      filters_.begin(), filters_.end(), std::uint64_t{0},
      [](std::uint64_t sum, const BloomFilter& filter) { return sum + filter.memory_bytes(); });
}

MarkSet::Groups MarkSet::groups_that_may_contain(const PathHash& hash, Groups of) const {
  Groups found = 0;
  for (std::size_t at = 0; at < filters_.size(); ++at) {
    const Groups group = Groups{1} << groups_[at];
    const bool is_asked = (of & group) != 0 && (found & group) == 0;
    if (is_asked && filters_[at].may_contain(hash)) found |= group;
  }
  return found;
}

MarkSet::Groups MarkSet::groups() const {
  Groups found = 0;
  for (std::size_t at = 0; at < filters_.size(); ++at) {
    if (filters_[at].bits_set() != 0) found |= Groups{1} << groups_[at];
  }
  return found;
}

bool MarkSet::may_contain(std::string_view path, const PathHash& hash) const {
  return filters_may_contain(hash) || tree_marks_.covers(path) || tree_marks_.has_below(path);
}

MarkSetFigures MarkSetFigures::of(const MarkSet& marks) {
  std::vector<Filter> filters;
  std::vector<double> groups_say_no(marks.group_count(), 1);
  for (std::size_t at = 0; at < marks.filters().size(); ++at) {
    const BloomFilter& filter = marks.filters()[at];
    filters.push_back({filter.shape(), filter.bits_set()});
    groups_say_no[marks.groups_of_filters()[at]] *=
        1 - FilterFigures::of(filters.back().shape, filters.back().bits_set).fp_rate;
  }
  MarkSetFigures figures = of(filters);
  if (!groups_say_no.empty()) figures.fp_rate_of_group = 1 - std::ranges::min(groups_say_no);
  return figures;
}

MarkSetFigures MarkSetFigures::of(std::span<const Filter> filters) {
  MarkSetFigures sum;
  double bits_set = 0;
  double all_say_no = 1;
  for (const Filter& filter : filters) {
    const auto figures = FilterFigures::of(filter.shape, filter.bits_set);
    sum.items += figures.items;
    sum.bits += filter.shape.bits;
    bits_set += static_cast<double>(filter.bits_set);
    all_say_no *= 1 - figures.fp_rate;
  }
  if (sum.bits != 0) sum.density = bits_set / static_cast<double>(sum.bits);
  sum.fp_rate = 1 - all_say_no;
  return sum;
}

std::uint64_t MarkSetFigures::whole_items() const { return static_cast<std::uint64_t>(std::llround(items)); }

}  // namespace spoor::tracker
