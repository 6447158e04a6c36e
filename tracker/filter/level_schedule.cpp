#include "tracker/filter/level_schedule.h"

#include <algorithm>
#include <cmath>

namespace spoor::tracker {
namespace {

constexpr std::size_t levels_max = 32;

// The bits expected to be set by n items: m (1 - e^(-kn/m)).
std::uint64_t bits_set_by(double items, BloomShape shape) {
  const double bits = static_cast<double>(shape.bits);
  const double set = -bits * std::expm1(-static_cast<double>(shape.hashes) * items / bits);
  return std::max<std::uint64_t>(static_cast<std::uint64_t>(set), 1);
}

}  // namespace

LevelSchedule::LevelSchedule(std::uint64_t items, double fp_rate) : fp_rate_(fp_rate) {
  std::uint64_t bytes = 0;
  for (std::size_t level = 0; level < levels_max; ++level) {
    const std::uint64_t level_items = items << level;
    if (level_items >> level != items) break;
    const auto shape = BloomShape::for_items(level_items, std::ldexp(fp_rate, -static_cast<int>(level)));
    const bool is_possible = shape.bits < BloomShape::bits_max && shape.hashes < BloomShape::hashes_max;
    if (!levels_.empty() && (!is_possible || shape == levels_.back().shape)) break;
    bytes += shape.byte_count();
    if (!levels_.empty() && bytes > bytes_max) break;
    const double items_max = static_cast<double>(level_items);
    levels_.push_back({shape, items_max, bits_set_by(items_max, shape)});
  }
}

std::optional<std::size_t> LevelSchedule::level_of(BloomShape shape) const {
  const auto found =
      std::find_if(levels_.begin(), levels_.end(), [&](const Level& level) { return level.shape == shape; });
  if (found == levels_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - levels_.begin());
}

std::size_t LevelSchedule::level_for(double items) const {
  const auto found = std::find_if(levels_.begin(), levels_.end(),
                                  [&](const Level& level) { return level.items_max >= items; });
  return found == levels_.end() ? last() : static_cast<std::size_t>(found - levels_.begin());
}

}  // namespace spoor::tracker
