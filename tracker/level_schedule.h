#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tracker/bloom_filter.h"

namespace spoor::tracker {

// The size classes of a cycle's filters. Level i is made for n * 2^i items at a rate of p / 2^i false
// positives (a scalable Bloom filter, Almeida et al. 2007): all levels together stay under 2p, however
// far a cycle grows. Level 0 is the filter of MinIO's shape. See docs/filters.md.
//
// Immutable; thread-safe.
class LevelSchedule {
 public:
  // No schedule of any node goes further: the bound on levels that come from outside.
  static constexpr std::size_t level_max = 63;

  // Of all levels together, but for level 0, which always is one: the merge of any number of cycles and nodes
  // has one filter of each, and a scan has to be able to read it (peer::HttpTransport::Options).
  static constexpr std::uint64_t bytes_max = std::uint64_t{192} << 20U;

  // `items` >= 1, 0 < `fp_rate` < 1. It ends with the last level that a filter can have the shape of, or
  // before the one that would pass bytes_max.
  LevelSchedule(std::uint64_t items, double fp_rate);

  std::size_t count() const { return levels_.size(); }
  std::size_t last() const { return levels_.size() - 1; }

  BloomShape shape(std::size_t level) const { return levels_[level].shape; }

  // How many items a level is made for.
  double items_max(std::size_t level) const { return levels_[level].items_max; }

  // How many bits are set in a filter of that level once it holds what it is made for.
  std::uint64_t bits_set_max(std::size_t level) const { return levels_[level].bits_set_max; }

  // Which level filters of this shape are; nothing for a foreign shape.
  std::optional<std::size_t> level_of(BloomShape shape) const;

  // The smallest level made for at least so many items; the last one where none is.
  std::size_t level_for(double items) const;

  // Where the next cycle is to start if scans merge so many items from the whole cluster: the smallest
  // level made for twice as many. Of a filter at its limit a scan reads four times what it does of one
  // that is half as full.
  std::size_t start_level_for(double merged_items) const { return level_for(2 * merged_items); }

  // The rate of false positives that a cycle which was not held back by the memory limit stays under.
  double fp_rate_max() const { return 2 * fp_rate_; }

 private:
  struct Level {
    BloomShape shape;
    double items_max = 0;
    std::uint64_t bits_set_max = 0;
  };

  double fp_rate_;
  std::vector<Level> levels_;
};

}  // namespace spoor::tracker
