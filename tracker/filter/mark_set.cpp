#include "tracker/filter/mark_set.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

namespace spoor::tracker {

namespace {

// Approximately a string, its reference count and the pointer to it.
constexpr std::uint64_t tree_mark_bytes = 100;

std::uint64_t bytes_of(const TreeMarks& marks) { return marks.size() * tree_mark_bytes + marks.bytes(); }

}  // namespace

const BloomFilter* MarkSet::filter_of(BloomShape shape) const {
  const auto found = std::find_if(filters_.begin(), filters_.end(),
                                  [&](const BloomFilter& filter) { return filter.shape() == shape; });
  return found == filters_.end() ? nullptr : &*found;
}

BloomFilter* MarkSet::own_filter_of(BloomShape shape) {
  return const_cast<BloomFilter*>(filter_of(shape));  // of this set, which is not const
}

bool MarkSet::add(const PathHash& hash, BloomShape shape) {
  BloomFilter* filter = own_filter_of(shape);
  if (filter == nullptr) filter = &filters_.emplace_back(shape);
  return filter->add(hash);
}

void MarkSet::add_filter(BloomFilter filter) {
  if (BloomFilter* own = own_filter_of(filter.shape())) {
    own->merge(filter);
  } else {
    filters_.push_back(std::move(filter));
  }
}

void MarkSet::merge(const MarkSet& other) {
  for (const BloomFilter& filter : other.filters_) {
    if (BloomFilter* own = own_filter_of(filter.shape())) {
      own->merge(filter);
    } else {
      filters_.push_back(filter);
    }
  }
  tree_marks_.merge(other.tree_marks_);
}

bool MarkSet::try_merge(const MarkSet& other, std::uint64_t bytes_max) {
  std::uint64_t bytes = bytes_of(tree_marks_) + bytes_of(other.tree_marks_);
  for (const BloomFilter& filter : filters_) bytes += filter.shape().byte_count();
  for (const BloomFilter& filter : other.filters_) {
    if (filter_of(filter.shape()) == nullptr) bytes += filter.shape().byte_count();
  }
  if (bytes > bytes_max) return false;
  merge(other);
  return true;
}

MarkSet MarkSet::packed() const {
  MarkSet marks;
  marks.filters_.reserve(filters_.size());
  for (const BloomFilter& filter : filters_) marks.filters_.push_back(filter.packed());
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
