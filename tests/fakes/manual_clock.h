// A clock that the test moves.
#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"

namespace spoor::fakes {

// Thread-safe.
class ManualClock final : public base::Clock {
 public:
  base::WallTime wall_now() const override { return base::WallTime(std::chrono::nanoseconds(wall_ns_)); }
  base::SteadyTime steady_now() const override {
    return base::SteadyTime(std::chrono::nanoseconds(steady_ns_));
  }

  // Time passes.
  void advance(std::chrono::nanoseconds by) {
    wall_ns_ += by.count();
    steady_ns_ += by.count();
  }

  // The time of day is set, in either direction; no time passes.
  void set_wall(base::WallTime to) { wall_ns_ = to.time_since_epoch().count(); }

 private:
  // Two different times, neither of them zero, so that mixing them up shows.
  std::atomic<std::chrono::nanoseconds::rep> wall_ns_{
      std::chrono::nanoseconds(std::chrono::hours(24 * 365 * 55)).count()};
  std::atomic<std::chrono::nanoseconds::rep> steady_ns_{
      std::chrono::nanoseconds(std::chrono::hours(1000)).count()};
};

}  // namespace spoor::fakes
