#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "scanner/walk/directory_reader.h"

namespace spoor::support {

// Waits until later changes get a later timestamp: a scan that reads a directory within one timestamp step of
// its last change reports it again (scanner/walk/directory_reader.h).
inline void outlast_timestamp_step() {
  const base::FileTimeClock clock;
  // A file that was looked at may have a time between two ticks, ahead of that clock (since Linux 6.13).
  const std::int64_t begin_ns = base::SystemClock().wall_now().time_since_epoch().count();
  while (scanner::is_within_step(begin_ns, clock.wall_now().time_since_epoch().count()))
    std::this_thread::yield();
}

}  // namespace spoor::support
