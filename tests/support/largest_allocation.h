// Sees the largest piece of memory that was asked for: how a test tells that a parser does not
// allocate by a length it was merely told. Link largest_allocation.cpp, which replaces operator new.
#pragma once

#include <cstddef>

namespace spoor::support {

// Forgets what was asked for before.
void reset_largest_allocation();

// By any thread, since the reset.
std::size_t largest_allocation_bytes();

}  // namespace spoor::support
