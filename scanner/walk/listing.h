// What reading one directory gives.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "scanner/store/directory_row.h"
#include "scanner/store/files.h"

namespace spoor::scanner {

// The entries of a directory that the rules do not ignore.
struct Listing {
  Totals own;               // a file with several names in it has one size
  LinkedFiles linked = {};  // of them, those that have further names, here or elsewhere; sorted
  // Of the names of all entries, and of the size, mtime and ctime of those that are no directories: differs
  // whenever one of them does. The order of the listing does not count.
  std::uint64_t signature = 0;
  // The same without the directory's own times and the space that files take; never 0.
  std::uint64_t entries = 0;
  // Something changed so shortly before the reading that it may change again without another time
  // (is_within_step): the same signature proves nothing next time. The signatures of such files in `files`
  // are never found again.
  bool is_racy = false;
  Subdirectories subdirectories;  // sorted
  std::optional<Files> files;     // sorted; nothing unless ListingParts::files
  std::string owners = {};  // of the files, encoded (store/owner_sums.h); empty unless ListingParts::owners
  // When the directory or a file in it was changed last, its attributes included.
  std::int64_t ctime_ns = 0;
  // The first failure to look at a file: the totals and the signature are without it.
  std::optional<base::Error> incomplete;
};

// What a listing has beyond the sums.
struct ListingParts {
  bool files = false;   // their names
  bool owners = false;  // those of the files
};

// Whether a change made at `now_ns`, or later, may still get the time `time_ns`: file systems keep times in
// steps. Both are times of the kernel's clock for files (base::FileTimeClock), or of a server whose clock is
// at most a tick behind it. A time of whole seconds is that of a file system which keeps no fractions: ext4
// with inodes of 128 bytes has steps of 1 s, FAT of 2 s.
inline bool is_within_step(std::int64_t time_ns, std::int64_t now_ns) {
  using std::chrono::nanoseconds;
  constexpr nanoseconds tick = std::chrono::milliseconds(10);
  constexpr nanoseconds coarsest = std::chrono::seconds(2);
  constexpr std::int64_t second = nanoseconds(std::chrono::seconds(1)).count();
  return time_ns > now_ns - ((time_ns % second == 0 ? coarsest : nanoseconds(0)) + tick).count();
}

}  // namespace spoor::scanner
