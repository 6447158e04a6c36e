// Time as a parameter: whatever depends on it takes a Clock, so that tests move it by hand.
#pragma once

#include <chrono>

namespace spoor::base {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
using SteadyTime = std::chrono::time_point<std::chrono::steady_clock, std::chrono::nanoseconds>;

// Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;

  // The time of day: for people and files. It may jump, in either direction.
  virtual WallTime wall_now() const = 0;

  // Never goes back; means nothing outside this process.
  virtual SteadyTime steady_now() const = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
};

// Its time of day is the one that the kernel gives to a file that changes now. It falls behind the
// SystemClock's by a tick, and by more where a virtual machine's processors are busy (clock_gettime(2),
// CLOCK_REALTIME_COARSE).
class FileTimeClock final : public Clock {
 public:
  WallTime wall_now() const override;
  SteadyTime steady_now() const override;
};

}  // namespace spoor::base
