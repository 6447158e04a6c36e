#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "scanner/timestamp_step.h"

namespace spoor::support {

// Waits until no later change can get a time that a file has now: a scan that reads a directory within that
// step of its last change reports it once more (scanner/timestamp_step.h).
inline void outlast_timestamp_step() {
  const base::FileTimeClock clock;
  const auto now_ns = [&] { return std::int64_t{clock.wall_now().time_since_epoch().count()}; };
  const std::int64_t begin_ns = now_ns();
  while (scanner::is_within_step(begin_ns, now_ns())) std::this_thread::yield();
}

}  // namespace spoor::support
