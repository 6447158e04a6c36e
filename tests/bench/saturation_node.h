// A node of the saturation benchmark: what its tracker answers a scan over several cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "tests/bench/saturation_load.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/filter/mark_set.h"

namespace spoor::bench {

struct NodeAnswer {
  tracker::MarkSet marks;  // of all its cycles
  // The most that all its filters took, of the times when a cycle was full.
  std::uint64_t memory_bytes = 0;
  bool is_saturated = false;
};

struct NodeOptions {
  std::size_t cycles = 1;
  std::size_t start_level = 0;  // that is asked for each cycle
  tracker::LevelSchedule levels{200'000, 0.1};
  std::uint64_t memory_bytes_max = 0;  // 0 leaves nothing but level 0: the ancestor
};

NodeAnswer run_node(SaturationLoad load, const NodeOptions& options);

}  // namespace spoor::bench
