#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/usage_database.h"

namespace spoor::scanner {

// The totals of one logical directory, summed over the drives that have it.
struct UsageEntry {
  std::string path;         // "" is the root
  std::uint64_t depth = 0;  // below the directory that was asked for, which has 0
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;  // below it; one that lies on two drives counts twice
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  std::int64_t mtime_ns = 0;  // the newest in the subtree
  // Whether nothing of it, on any drive, was left for another scan.
  bool complete = true;
};

struct Usage {
  UsageEntry total;
  // Those below, down to the depth asked for: each behind its parent, by name.
  std::vector<UsageEntry> below;
  // The start of the last scan that saw everything: which heard all peers, or walked everything.
  // Nothing where none did yet.
  std::optional<base::WallTime> as_of;
  // Whether the totals hold every change up to the last scan: nothing was left below the path, and
  // no peer's marks.
  bool complete = false;
};

// `path` must be normalised, or "" for the root. Nothing where no drive has the directory, as far as
// is known. Costs what is returned, whatever lies below.
base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               std::uint64_t depth = 1);

}  // namespace spoor::scanner
