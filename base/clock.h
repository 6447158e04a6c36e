// Time as a parameter: code that depends on time takes a Clock, so that tests can control it.
#pragma once

#include <chrono>

namespace spoor::base {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // The time of day, for display and files. It may jump in either direction.
  virtual WallTime wall_now() const = 0;

  // Never decreases; only valid within this process.
  virtual SteadyTime steady_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
};

// wall_now() is the time stamp that the kernel sets on a file that changes now. It is up to a tick behind the
// SystemClock, and more on a virtual machine with busy processors (clock_gettime(2), CLOCK_REALTIME_COARSE).
class FileTimeClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
};

}  // namespace spoor::base
