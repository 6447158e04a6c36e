#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/tree_marks.h"

namespace spoor::tracker {

// A set of marks: a short list of filters, no two of one shape, and tree marks. It is the content of one
// cycle, the merge of many cycles of many peers, and the input of a scan.
//
// Merging is commutative, associative and idempotent with regard to lookups. Filters of different shapes are
// kept side by side, and a lookup reads all of them.
//
// Not thread-safe.
class MarkSet {
 public:
  // Adds a path to the filter of this shape, and creates the filter if there is none. Returns whether the
  // path was new to that filter.
  bool add(const PathHash& hash, BloomShape shape);

  // Returns whether the tree was not covered before.
  bool add_tree(std::string_view path) { return tree_marks_.add(path); }

  // set_trees() does not apply the bounds; bound_trees() joins the tree marks until they are within them.
  void set_trees(TreeMarks trees) { tree_marks_ = std::move(trees); }
  void bound_trees() { tree_marks_.bound(); }

  // Adds a whole filter: merges it into the filter of the same shape, if there is one.
  void add_filter(BloomFilter filter);

  void merge(const MarkSet& other);

  // For sets from outside, where a packed filter of a few bytes may be one of 8 GiB when dense. Merges,
  // unless the result would exceed `bytes_max` if all its filters were dense: then it returns false, and the
  // set is unchanged.
  static constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 30U;
  bool try_merge(const MarkSet& other, std::uint64_t bytes_max = memory_bytes_max);

  // The same set, with every filter packed that takes less memory packed.
  MarkSet packed() const;

  // Makes every filter dense that takes at most `filter_bytes_max` then: lookups in a packed one are
  // expensive.
  void unpack(std::uint64_t filter_bytes_max);

  // Approximate heap memory of the set, and of its filters alone.
  std::uint64_t memory_bytes() const;
  std::uint64_t filter_bytes() const;

  // Whether some filter may contain the path of this hash. Ignores tree marks.
  bool filters_may_contain(const PathHash& hash) const;

  // Whether the path may have changed, or must be read on the way to a change: a filter may contain it, or a
  // tree mark is at, above or below it.
  bool may_contain(std::string_view path, const PathHash& hash) const;

  const std::vector<BloomFilter>& filters() const { return filters_; }
  // Null if there is none of this shape.
  const BloomFilter* filter_of(BloomShape shape) const;
  const TreeMarks& tree_marks() const { return tree_marks_; }
  bool empty() const { return filters_.empty() && tree_marks_.empty(); }

 private:
  BloomFilter* own_filter_of(BloomShape shape);

  std::vector<BloomFilter> filters_;
  TreeMarks tree_marks_;
};

// Estimates for a whole set: `items` is the sum over the filters (too high if filters share keys), `fp_rate`
// the probability of a false positive in any filter, `density` that of all bits together.
struct MarkSetFigures {
  // The data of one filter that the estimates need.
  struct Filter {
    BloomShape shape;
    std::uint64_t bits_set = 0;
  };

  double items = 0;
  double density = 0;
  double fp_rate = 0;
  std::uint64_t bits = 0;

  static MarkSetFigures of(const MarkSet& marks);
  static MarkSetFigures of(std::span<const Filter> filters);

  std::uint64_t whole_items() const;
};

}  // namespace spoor::tracker
