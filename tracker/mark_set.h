#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tracker/bloom_filter.h"
#include "tracker/tree_marks.h"

namespace spoor::tracker {

// What is known to have changed: a short list of filters, no two of one shape, and tree marks. The
// content of one cycle, the merge of many cycles of many peers, and the input of a scan.
//
// Merging is commutative, associative and idempotent in what the set answers; filters of other
// shapes are kept side by side, and a lookup asks all of them.
//
// Not thread-safe.
class MarkSet {
 public:
  // Adds a path to the filter of this shape, which is created when there is none. Returns whether
  // the path was new to that filter.
  bool add(const PathHash& hash, BloomShape shape);

  // Returns whether the tree was not covered before.
  bool add_tree(std::string_view path) { return tree_marks_.add(path); }

  // As they are, whatever their bounds, and joined until they are within them.
  void set_trees(TreeMarks trees) { tree_marks_ = std::move(trees); }
  void bound_trees() { tree_marks_.bound(); }

  // Adds a whole filter, as read from outside.
  void add_filter(BloomFilter filter);

  void merge(const MarkSet& other);

  // For sets from outside, where a packed filter of a few bytes may be one of 8 GiB: merges unless the result
  // could take more than this in memory, were all its filters dense. Returns false then, and the set is
  // unchanged.
  static constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 30U;
  bool try_merge(const MarkSet& other, std::uint64_t bytes_max = memory_bytes_max);

  // The same set with all filters packed that take less memory so.
  MarkSet packed() const;

  // Makes the filters dense that take at most so many bytes then: a lookup in a packed one is dear.
  void unpack(std::uint64_t filter_bytes_max);

  // What it takes on the heap, about, and what its filters alone do.
  std::uint64_t memory_bytes() const;
  std::uint64_t filter_bytes() const;

  // Whether some filter may contain the path of this hash. Tree marks are not asked.
  bool filters_may_contain(const PathHash& hash) const;

  // Whether the path, or something below or above it in a way that concerns it, may have changed:
  // it is in a filter, in a marked tree, or on the way to one.
  bool may_contain(std::string_view path, const PathHash& hash) const;

  const std::vector<BloomFilter>& filters() const { return filters_; }
  // Null where there is none of this shape.
  const BloomFilter* filter_of(BloomShape shape) const;
  const TreeMarks& tree_marks() const { return tree_marks_; }
  bool empty() const { return filters_.empty() && tree_marks_.empty(); }

 private:
  BloomFilter* own_filter_of(BloomShape shape);

  std::vector<BloomFilter> filters_;
  TreeMarks tree_marks_;
};

// The figures of a whole set: items are summed (an upper estimate where filters share keys), a
// false positive is one of any filter, density is that of all bits together.
struct MarkSetFigures {
  // One filter of a set: all that its figures need.
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
