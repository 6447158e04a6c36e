#pragma once

#include <exception>

namespace spoor::daemon {

// The completion handler of a coroutine that reports its failures as values: an exception out of it
// is a bug, and ends the program through io_context::run() rather than being lost.
inline constexpr auto rethrow = [](const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
};

}  // namespace spoor::daemon
