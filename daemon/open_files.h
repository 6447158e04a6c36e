#pragma once

#include <cstddef>

namespace spoor::daemon {

// How many connections may be open at a time: `wanted`, or as many as the limit on open files
// (RLIMIT_NOFILE) has room for once journal, snapshots and peers have theirs, and so many threads that serve
// besides the main one; the log says so if that is less. Raises the limit as far as this process may.
// Thread-safe.
std::size_t connections_that_fit(std::size_t wanted, std::size_t further_threads);

}  // namespace spoor::daemon
