// Waits for a condition that no event announces.
#pragma once

#include <chrono>
#include <thread>

namespace spoor::watch {

// Returns whether `holds()` becomes true within a time that a busy machine does not need.
template <class Condition>
bool eventually(const Condition& holds, std::chrono::seconds at_most = std::chrono::seconds(100)) {
  const auto give_up_at = std::chrono::steady_clock::now() + at_most;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > give_up_at) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // between two looks at the condition
  }
  return true;
}

}  // namespace spoor::watch
