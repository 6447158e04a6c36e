#include "tests/bench/saturation_node.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/hash.h"
#include "tracker/tracker.h"

namespace spoor::bench {
namespace {

std::uint64_t filter_bytes(const tracker::MarkSet& marks) {
  std::uint64_t bytes = 0;
  for (const tracker::BloomFilter& filter : marks.filters()) bytes += filter.shape().byte_count();
  return bytes;
}

// What the filters take packed: some 4 % above the entropy of their bits.
double packed_bytes(const tracker::MarkSet& marks) {
  double bytes = 0;
  for (const tracker::BloomFilter& filter : marks.filters()) {
    const double one = std::clamp(tracker::FilterFigures::of(filter).density, 1e-9, 1 - 1e-9);
    const double entropy = -one * std::log2(one) - (1 - one) * std::log2(1 - one);
    bytes += std::min(1.04 * entropy, 1.0) * static_cast<double>(filter.shape().byte_count());
  }
  return bytes;
}

// The filters of a cycle as a tracker grows them.
class GrowingCycle {
 public:
  GrowingCycle(const tracker::LevelSchedule& levels, std::size_t start_level, double bytes_max)
      : levels_(levels), bytes_max_(bytes_max), level_(start_level) {
    while (level_ > 0 && bytes_of(level_) > bytes_max_) --level_;
    is_saturated_ = level_ < start_level;
    look_again_after();
  }

  void mark(std::string_view path) {
    tracker::for_each_prefix_hash(path, [&](const tracker::PathHash& hash, bool) {
      if (marks_.filters_may_contain(hash)) return;
      marks_.add(hash, levels_.shape(level_));
      if (--until_look_ == 0) grow();
    });
  }

  const tracker::MarkSet& marks() const { return marks_; }
  bool is_saturated() const { return is_saturated_; }

 private:
  double bytes_of(std::size_t level) const { return static_cast<double>(levels_.shape(level).byte_count()); }

  void look_again_after() {
    until_look_ = static_cast<std::uint64_t>(std::max(levels_.items_max(level_) / 64, 1.0));
  }

  void grow() {
    look_again_after();
    const auto figures = tracker::FilterFigures::of(marks_.filters().back());
    if (figures.items < levels_.items_max(level_)) return;
    if (static_cast<double>(filter_bytes(marks_)) + bytes_of(level_ + 1) > bytes_max_) {
      is_saturated_ = true;
      return;
    }
    ++level_;
    look_again_after();
  }

  const tracker::LevelSchedule& levels_;
  double bytes_max_;
  std::size_t level_;
  tracker::MarkSet marks_;
  std::uint64_t until_look_ = 1;
  bool is_saturated_ = false;
};

}  // namespace

NodeAnswer run_fixed_node(SaturationLoad load, const NodeOptions& options) {
  const base::SystemClock clock;
  const auto born = tracker::Tracker::born(tracker::InstanceId::random(), clock);
  tracker::Tracker tracker({}, clock, born);
  SaturationPaths paths;
  std::vector<tracker::Mark> marks(1);
  for (load.cycle = 1; load.cycle <= options.cycles; ++load.cycle) {
    tracker.cycle({.current = {load.cycle}, .oldest = {}, .instance = {}, .marks_wanted = false});
    for (std::uint64_t i = 0; i < load.objects; ++i) {
      marks[0].path.assign(paths.written(load, i));
      tracker.mark(marks);
    }
  }
  NodeAnswer answer;
  answer.marks = tracker.cycle({.current = {}, .oldest = {1}, .instance = born.instance}).marks;
  for (const auto& cycle : tracker.status().cycles) {
    answer.items += cycle.filter.items;
    answer.memory_bytes += cycle.filter.bits / 8;
    answer.is_saturated = answer.is_saturated || cycle.saturated;
  }
  return answer;
}

NodeAnswer run_growing_node(SaturationLoad load, const NodeOptions& options,
                            const tracker::LevelSchedule& levels) {
  NodeAnswer answer;
  SaturationPaths paths;
  const double level_0_bytes = static_cast<double>(levels.shape(0).byte_count());
  double closed_bytes = 0;
  for (load.cycle = 1; load.cycle <= options.cycles; ++load.cycle) {
    // Half of what the closed cycles leave; level 0 always fits.
    const double left = static_cast<double>(options.memory_bytes_max) - closed_bytes;
    GrowingCycle cycle(levels, options.start_level, std::max(left / 2, level_0_bytes));
    for (std::uint64_t i = 0; i < load.objects; ++i) cycle.mark(paths.written(load, i));
    answer.items += tracker::MarkSetFigures::of(cycle.marks()).items;
    answer.memory_bytes =
        std::max(answer.memory_bytes, static_cast<std::uint64_t>(closed_bytes) + filter_bytes(cycle.marks()));
    answer.is_saturated = answer.is_saturated || cycle.is_saturated();
    closed_bytes += packed_bytes(cycle.marks());
    answer.marks.merge(cycle.marks());
  }
  return answer;
}

}  // namespace spoor::bench
