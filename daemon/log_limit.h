#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace spoor::daemon {

// Limits the lines that a client can cause in the log: one a minute for each key. Beyond keys_max in a
// minute, all other keys count as one.
//
// Not thread-safe.
class LogLimit {
 public:
  static constexpr std::chrono::minutes pause{1};
  static constexpr std::size_t keys_max = 64;

  // Notes so many events of the key. Returns how many there were since its last line, these included; nothing
  // where no line is to be logged now.
  std::optional<std::uint64_t> note(const std::string& key, std::uint64_t events, base::SteadyTime now);

 private:
  struct Entry {
    std::optional<base::SteadyTime> logged_at;
    std::uint64_t unlogged = 0;
  };
  std::map<std::string, Entry> entries_;
  Entry others_;
};

}  // namespace spoor::daemon
