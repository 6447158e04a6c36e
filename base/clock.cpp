#include "base/clock.h"

#include <ctime>

namespace spoor::base {

WallTime SystemClock::wall_now() const { return std::chrono::system_clock::now(); }

SteadyTime SystemClock::steady_now() const { return std::chrono::steady_clock::now(); }

WallTime FileTimeClock::wall_now() const {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return WallTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
}

SteadyTime FileTimeClock::steady_now() const { return std::chrono::steady_clock::now(); }

}  // namespace spoor::base
