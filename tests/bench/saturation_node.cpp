#include "tests/bench/saturation_node.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "tracker/cycles/tracker.h"

namespace spoor::bench {

NodeAnswer run_node(SaturationLoad load, const NodeOptions& options) {
  const base::SystemClock clock;
  const auto born = tracker::Tracker::born(tracker::InstanceId::random(), clock);
  tracker::Tracker tracker({.levels = options.levels, .memory_bytes_max = options.memory_bytes_max}, clock,
                           born);
  NodeAnswer answer;
  SaturationPaths paths;
  std::vector<tracker::Mark> marks(1);
  for (load.cycle = 1; load.cycle <= options.cycles; ++load.cycle) {
    // The first cycle there is was not opened by anybody who asked for a level.
    tracker.cycle({.current = {load.cycle + 1},
                   .oldest = {},
                   .instance = {},
                   .marks_wanted = false,
                   .start_level = options.start_level});
    for (std::uint64_t i = 0; i < load.objects; ++i) {
      marks[0].path.assign(paths.written(load, i));
      tracker.mark(marks);
    }
    const auto status = tracker.status();
    answer.memory_bytes = std::max(answer.memory_bytes, status.memory_bytes);
    answer.is_saturated = answer.is_saturated || status.cycles.front().saturated;
  }
  answer.marks = tracker.cycle({.current = {}, .oldest = {1}, .instance = born.instance}).marks;
  return answer;
}

}  // namespace spoor::bench
