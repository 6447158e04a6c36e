#pragma once

#include <cstddef>
#include <string_view>

namespace spoor::base {

// Call first in a program: where a standard stream is closed, the next file that is opened would take its
// number, and what is printed. Writing to a closed one fails all the same.
void reserve_standard_streams();

// Writes what was printed to standard output so far. Throws if that, or anything before it, was not written:
// the disk is full, for example. A program calls it before it ends: the C library ignores such errors.
void flush_standard_output();

// Writes `text` to standard error, for logs: does not wait for a reader that has stopped reading. Returns how
// many bytes were written; the rest is lost.
std::size_t write_to_standard_error(std::string_view text);

}  // namespace spoor::base
