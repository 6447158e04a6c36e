// Records the largest allocation, for tests that a parser does not allocate memory by an unchecked length
// from its input. Link largest_allocation.cpp, which replaces operator new.
#pragma once

#include <cstddef>

namespace spoor::support {

// Starts a new measurement.
void reset_largest_allocation();

// The largest allocation by any thread since the reset.
std::size_t largest_allocation_bytes();

}  // namespace spoor::support
