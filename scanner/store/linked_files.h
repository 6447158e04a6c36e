#pragma once

#include <cstdint>
#include <vector>

namespace spoor::scanner {

// A file that had more than one hard link when a directory was read, in that directory or elsewhere.
struct LinkedFile {
  std::uint64_t inode = 0;
  std::uint64_t bytes = 0;      // as in the directory's own totals
  std::uint64_t allocated = 0;  // likewise

  friend bool operator==(const LinkedFile&, const LinkedFile&) = default;
};

// The linked files of one directory, by inode, without duplicates.
using LinkedFiles = std::vector<LinkedFile>;

}  // namespace spoor::scanner
