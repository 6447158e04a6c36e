#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"

namespace spoor::daemon {

// Limits the log lines that clients can cause to one per minute for each key. Beyond keys_max keys in a
// minute, all other keys count as one.
//
// Not thread-safe.
class LogLimit {
 public:
  static constexpr std::chrono::minutes pause{1};
  static constexpr std::size_t keys_max = 64;

  // Counts `events` events of the key. Returns the number since the key's last line, including these;
  // std::nullopt if no line is to be logged now.
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
