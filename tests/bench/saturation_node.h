// A node of the saturation benchmark: what its tracker answers a scan over several cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/bench/saturation_load.h"
#include "tracker/level_schedule.h"
#include "tracker/mark_set.h"

namespace spoor::bench {

struct NodeAnswer {
  tracker::MarkSet marks;  // of all its cycles
  double items = 0;        // as estimated
  // The most that all its filters took at any time.
  std::uint64_t memory_bytes = 0;
  bool is_saturated = false;
};

struct NodeOptions {
  std::size_t cycles = 1;
  std::size_t start_level = 0;  // at which every cycle is opened
  std::uint64_t memory_bytes_max = 0;
};

// A tracker that keeps one level, however full it gets: the ancestor.
NodeAnswer run_fixed_node(SaturationLoad load, const NodeOptions& options);

// One that grows by the schedule, within its memory.
NodeAnswer run_growing_node(SaturationLoad load, const NodeOptions& options,
                            const tracker::LevelSchedule& levels);

}  // namespace spoor::bench
