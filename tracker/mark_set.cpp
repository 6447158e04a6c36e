#include "tracker/mark_set.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace spoor::tracker {

BloomFilter* MarkSet::filter_of(BloomShape shape) {
  const auto found = std::find_if(filters_.begin(), filters_.end(),
                                  [&](const BloomFilter& filter) { return filter.shape() == shape; });
  return found == filters_.end() ? nullptr : &*found;
}

bool MarkSet::add(const PathHash& hash, BloomShape shape) {
  BloomFilter* filter = filter_of(shape);
  if (filter == nullptr) filter = &filters_.emplace_back(shape);
  return filter->add(hash);
}

void MarkSet::add_filter(BloomFilter filter) {
  if (BloomFilter* own = filter_of(filter.shape())) {
    own->merge(filter);
  } else {
    filters_.push_back(std::move(filter));
  }
}

void MarkSet::merge(const MarkSet& other) {
  for (const BloomFilter& filter : other.filters_) {
    if (BloomFilter* own = filter_of(filter.shape())) {
      own->merge(filter);
    } else {
      filters_.push_back(filter);
    }
  }
  tree_marks_.merge(other.tree_marks_);
}

bool MarkSet::filters_may_contain(const PathHash& hash) const {
  return std::any_of(filters_.begin(), filters_.end(),
                     [&](const BloomFilter& filter) { return filter.may_contain(hash); });
}

bool MarkSet::may_contain(std::string_view path, const PathHash& hash) const {
  return filters_may_contain(hash) || tree_marks_.covers(path) || tree_marks_.has_below(path);
}

MarkSetFigures MarkSetFigures::of(const MarkSet& marks) {
  std::vector<Filter> filters;
  for (const BloomFilter& filter : marks.filters()) filters.push_back({filter.shape(), filter.bits_set()});
  return of(filters);
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
