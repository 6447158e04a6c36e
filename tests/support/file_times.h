#pragma once

#include <cstdint>
#include <thread>

#include "base/clock.h"
#include "scanner/walk/listing.h"

namespace spoor::support {

// Waits until later changes get a later timestamp: a scan that reads a directory within one timestamp step of
// its last change reports it again (scanner/walk/listing.h).
inline void outlast_timestamp_step() {
  const base::FileTimeClock clock;
  const auto now_ns = [&] { return std::int64_t{clock.wall_now().time_since_epoch().count()}; };
  const std::int64_t begin_ns = now_ns();
  while (scanner::is_within_step(begin_ns, now_ns())) std::this_thread::yield();
}

}  // namespace spoor::support
