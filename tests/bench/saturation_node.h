// The namespace of the saturation benchmark: `bucket-B/team-TT/album-AA/set-S/object-OOOOOOOOOOOO`. A million
// sets in 8 buckets are written to; beside each component that is, as many are not. An object is a
// directory, like MinIO's. Four objects in a row go to one set, drawn at random. And a node that is written
// to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "tracker/filter/level_schedule.h"
#include "tracker/filter/mark_set.h"

namespace spoor::bench {

// Which objects one node writes in one cycle; no two loads have an object in common.
struct SaturationLoad {
  std::uint64_t round = 0;
  std::uint64_t node = 0;
  std::uint64_t cycle = 0;
  std::uint64_t objects = 0;
};

// Makes paths, one at a time in the same memory.
//
// Not thread-safe.
class SaturationPaths {
 public:
  // The object that the load writes as its `number`-th.
  const std::string& written(const SaturationLoad& load, std::uint64_t number);

  // A directory at depth 3 to 5 in which nothing was ever written, nor in what is above it up to a depth
  // between 2 and its own; both depths drawn evenly. What is above that was written to by the load.
  std::string_view untouched(const SaturationLoad& load, std::mt19937_64& engine);

 private:
  std::string path_ = "bucket-0/team-00/album-00/set-0/object-000000000000";
};

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

// What its tracker answers a scan over several cycles.
NodeAnswer run_node(SaturationLoad load, const NodeOptions& options);

}  // namespace spoor::bench
