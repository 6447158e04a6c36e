#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace spoor::cli {

// Calls functions that may hang in the kernel, such as one that reads a drive, each in a child process of its
// own, all at the same time. Returns the results, in the order of the calls; std::nullopt for one that has
// not returned after `timeout`, or ended without a result. A child that hangs is killed, and left to the
// kernel: neither this process nor one that reads its output waits for it.
//
// The calling process must have one thread only.
std::vector<std::optional<std::string>> call_in_children(
    const std::vector<std::function<std::string()>>& calls, std::chrono::milliseconds timeout);

}  // namespace spoor::cli
