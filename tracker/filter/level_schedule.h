#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "tracker/filter/bloom_filter.h"

namespace spoor::tracker {

// The sizes of a cycle's filters. Level i is sized for n * 2^i items at a false positive rate of p / 2^i (a
// scalable Bloom filter, Almeida et al. 2007): the rate of all levels together stays under 2p, however large
// a cycle grows. Level 0 has the shape of MinIO's filter. See docs/filters.md.
//
// Immutable; thread-safe.
class LevelSchedule {
 public:
  // The bound on level numbers from outside: no schedule has a higher one.
  static constexpr std::size_t level_max = 63;

  // The bound on all levels together; level 0 always exists, whatever its size. The merge of any number of
  // cycles and nodes has one filter of each level, and a scan must be able to read it
  // (peer::HttpTransport::Options).
  static constexpr std::uint64_t bytes_max = std::uint64_t{192} << 20U;

  // `items` >= 1, 0 < `fp_rate` < 1. The last level is the last one with a valid shape, or the last one
  // within bytes_max.
  LevelSchedule(std::uint64_t items, double fp_rate);

  std::size_t last() const { return levels_.size() - 1; }

  BloomShape shape(std::size_t level) const { return levels_[level].shape; }

  // The number of items that a level is sized for.
  double items_max(std::size_t level) const { return levels_[level].items_max; }

  // The expected number of bits set in a filter of that level that holds items_max(level) items.
  std::uint64_t bits_set_max(std::size_t level) const { return levels_[level].bits_set_max; }

  // The level of filters of this shape; nullopt for a shape that is not in the schedule.
  std::optional<std::size_t> level_of(BloomShape shape) const;

  // The smallest level sized for at least `items` items; the last level if there is none.
  std::size_t level_for(double items) const;

  // The start level of the next cycle if a scan merges `merged_items` from the whole cluster: the smallest
  // level sized for twice as many. With a full filter a scan reads four times as much as with one that is
  // half as full.
  std::size_t start_level_for(double merged_items) const { return level_for(2 * merged_items); }

  // The upper bound of the false positive rate of a cycle that is not saturated.
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
