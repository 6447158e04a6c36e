// Records the largest allocation, for tests that a parser does not allocate memory by an unchecked length
// from its input, and the number of allocations. Link largest_allocation.cpp, which replaces operator new.
#pragma once

#include <cstddef>

namespace spoor::support {

// Starts a new measurement.
void reset_largest_allocation();

// The largest allocation by any thread since the reset.
std::size_t largest_allocation_bytes();

// The number of allocations by all threads since the start.
std::size_t allocation_count();

}  // namespace spoor::support
