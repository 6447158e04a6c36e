#pragma once

namespace spoor::base {

// Writes what was printed to standard output so far. Throws if that, or anything before it, was not written:
// the disk is full, for example. A program calls it before it ends: the C library ignores such errors.
void flush_standard_output();

}  // namespace spoor::base
