#include "base/clock.h"

namespace spoor::base {

WallTime SystemClock::wall_now() const { return std::chrono::system_clock::now(); }

SteadyTime SystemClock::steady_now() const { return std::chrono::steady_clock::now(); }

}  // namespace spoor::base
