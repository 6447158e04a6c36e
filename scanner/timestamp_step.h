// How fine a file system's timestamps are: what changes twice within a step has the same times after both.
#pragma once

#include <chrono>
#include <cstdint>

namespace spoor::scanner {

// Whether a change made at `now`, or later, may still get this time; both are times of the kernel's clock for
// files (base::FileTimeClock), or of a server whose clock is at most a tick behind it. A time of whole
// seconds is that of a file system which keeps no more, such as ext4 with inodes of 128 bytes: 1 s; on FAT 2
// s.
inline bool is_within_step(std::int64_t time_ns, std::int64_t now_ns) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds tick = std::chrono::milliseconds(10);
  constexpr nanoseconds coarsest = std::chrono::seconds(2);
  constexpr std::int64_t second = nanoseconds(std::chrono::seconds(1)).count();
  return time_ns > now_ns - ((time_ns % second == 0 ? coarsest : nanoseconds(0)) + tick).count();
}

}  // namespace spoor::scanner
