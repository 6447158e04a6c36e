// Which calls of the preloaded library (failing_writes.cpp) fail; in a file that all programs of a test map.
#pragma once

#include <atomic>
#include <cstdint>

namespace spoor::faults {

struct WriteFaults {
  std::atomic<std::uint64_t> calls;  // so far; the first is 1
  std::atomic<std::uint64_t> first;  // that fails
  std::atomic<std::uint64_t> last;   // that fails
  std::atomic<int> error;            // their errno
};

}  // namespace spoor::faults
