#pragma once

#include <cstddef>

namespace spoor::daemon {

// Returns how many connections may be open at a time: `wanted`, or fewer if the limit on open files
// (RLIMIT_NOFILE) is too low for them beside the journal, the snapshots, the peers and `further_threads`
// serving threads; this is logged as a warning. First raises the soft limit to the hard limit. Thread-safe.
std::size_t connections_that_fit(std::size_t wanted, std::size_t further_threads);

}  // namespace spoor::daemon
