#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/tree_marks.h"

namespace spoor::tracker {

// A set of marks: filters and tree marks. It is the content of one cycle, the merge of many cycles, and, with
// the sets of many peers side by side, the input of a scan.
//
// The filters are in groups: one, or one for each set that was added by try_add_apart(). No two of a group
// have one shape. A merged filter holds what all its parts hold, until it is full; those of groups do not
// fill each other, and a lookup reads all of them.
//
// Merging is commutative, associative and idempotent with regard to lookups.
//
// Not thread-safe.
class MarkSet {
 public:
  // A bit for each group.
  using Groups = std::uint64_t;
  static constexpr std::size_t groups_max = 64;
  static constexpr std::uint64_t groups_bytes_max = std::uint64_t{256} << 20U;
  static constexpr std::size_t filters_apart_max = 1024;  // a lookup may read all of them
  static constexpr std::size_t group_filters_max = 1024;  // an encoded set has no more

  // Adds a path to the filter of this shape in the first group, and creates the filter if there is none.
  // Returns whether the path was new to that filter.
  bool add(const PathHash& hash, BloomShape shape);

  // Returns whether the tree was not covered before.
  bool add_tree(std::string_view path) { return tree_marks_.add(path); }

  void set_trees(TreeMarks trees) { tree_marks_ = std::move(trees); }
  void add_members(const TreeMarks& trees) { tree_marks_.add_members(trees.members()); }
  void drop_members() { tree_marks_.drop_members(); }

  // Adds a whole filter to a group: merges it into the filter of the same shape, if there is one.
  void add_filter(const BloomFilter& filter, std::size_t group = 0);
  void add_filter(BloomFilter&& filter, std::size_t group = 0);

  // Merges all groups of the other set into the first one.
  void merge(const MarkSet& other);

  // For sets from outside, where a packed filter of a few bytes may be one of 8 GiB when dense. Adds the
  // other set, which has one group, as a group of its own; where groups_max or groups_bytes_max allow no
  // more, merges it into one of the groups, by turns. If the result would exceed `bytes_max` with all filters
  // dense, or one group have more than group_filters_max, returns false, and the set is unchanged.
  static constexpr std::uint64_t memory_bytes_max = std::uint64_t{1} << 30U;
  bool try_add_apart(const MarkSet& other, std::uint64_t bytes_max = memory_bytes_max);

  // The same set, with every filter packed that takes less memory packed.
  MarkSet packed() const;

  // Makes every filter dense that takes at most `filter_bytes_max` then: lookups in a packed one are
  // expensive, but a larger one may be almost empty.
  void unpack(std::uint64_t filter_bytes_max = std::uint64_t{128} << 20U);

  // Approximate heap memory of the set, and of its filters alone.
  std::uint64_t memory_bytes() const;
  std::uint64_t filter_bytes() const;

  // Whether some filter may contain the path of this hash. Ignores tree marks.
  bool filters_may_contain(const PathHash& hash) const {
    return groups_that_may_contain(hash, ~Groups{0}) != 0;
  }

  // Those of the groups `of` of which some filter may contain the path of this hash.
  Groups groups_that_may_contain(const PathHash& hash, Groups of) const;

  // The groups with a filter that is not empty.
  Groups groups() const;

  // Whether the path may have changed, or must be read on the way to a change: a filter may contain it, or a
  // tree mark is at, above or below it.
  bool may_contain(std::string_view path, const PathHash& hash) const;

  const std::vector<BloomFilter>& filters() const { return filters_; }
  // The group of each of filters().
  std::span<const std::uint8_t> groups_of_filters() const { return groups_; }
  std::size_t shape_count() const;
  // The filters of one group, without tree marks; and how many groups there are.
  MarkSet group(std::size_t number) const;
  std::size_t group_count() const;
  // Null if there is none of this shape in the group.
  const BloomFilter* filter_of(BloomShape shape, std::size_t group = 0) const;
  const TreeMarks& tree_marks() const { return tree_marks_; }
  bool empty() const { return filters_.empty() && tree_marks_.empty(); }

 private:
  BloomFilter* own_filter_of(BloomShape shape, std::size_t group);
  template <class Filter>
  void merge_or_append(Filter&& filter, std::size_t group);
  std::uint64_t dense_bytes() const;

  std::vector<BloomFilter> filters_;
  std::vector<std::uint8_t> groups_;  // of each filter
  std::size_t merged_apart_ = 0;      // sets that had to share a group
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
  double fp_rate_of_group = 0;  // that of the fullest group
  std::uint64_t bits = 0;

  static MarkSetFigures of(const MarkSet& marks);
  static MarkSetFigures of(std::span<const Filter> filters);

  std::uint64_t whole_items() const;
};

}  // namespace spoor::tracker
