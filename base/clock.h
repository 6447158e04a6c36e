// Time as a parameter: code that depends on time takes a Clock, so that tests can control it. And times as
// text.
#pragma once

#include <chrono>
#include <ctime>
#include <optional>
#include <string>

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

class SystemClock : public Clock {
 public:
  WallTime wall_now() const override { return std::chrono::system_clock::now(); }
  SteadyTime steady_now() const override { return std::chrono::steady_clock::now(); }
};

// wall_now() is the time stamp that the kernel sets on a file that changes now. It is up to a tick behind the
// SystemClock, and more on a virtual machine with busy processors (clock_gettime(2), CLOCK_REALTIME_COARSE).
class FileTimeClock final : public SystemClock {
 public:
  WallTime wall_now() const override {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return WallTime(std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec));
  }
};

// "2026-11-21T04:05:06Z"
std::string iso_time(WallTime time);

// Parses such a text; nullopt for any other text.
std::optional<WallTime> parse_iso_time(const std::string& text);

}  // namespace spoor::base
