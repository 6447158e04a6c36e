#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/usage_database.h"

namespace spoor::scanner {

// The children of a directory that an answer has no room for, summed up.
struct UsageRest {
  std::uint64_t count = 0;
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;  // below them, themselves not included
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  bool complete = true;
};

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

  // Whether `children` and `rest` were looked up; not below the depth asked for.
  bool is_open = false;
  std::vector<UsageEntry> children;  // in the order asked for
  UsageRest rest;                    // the other children
};

struct Usage {
  UsageEntry total;
  // The start of the last scan that saw everything: which heard all peers, or walked everything.
  // Nothing where none did yet.
  std::optional<base::WallTime> as_of;
  // Whether the last scan was such a one. Where not, a peer's marks anywhere are still to be walked.
  bool saw_everything = false;
  // Whether a bound on the whole answer was met: some directories have fewer children than they were to
  // have, or were not opened.
  bool truncated = false;

  // Whether the entry's totals hold every change up to the last scan.
  bool is_complete(const UsageEntry& entry) const { return entry.complete && saw_everything; }
};

enum class UsageOrder {
  size,  // apparent size, the largest first
  files,
  name,
};

// "size", "files" or "name"; anything else is nothing.
std::optional<UsageOrder> parse_usage_order(std::string_view text);

struct UsageOptions {
  static constexpr std::uint64_t unbounded = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t depth = 1;
  UsageOrder order = UsageOrder::size;
  std::uint64_t children_max = unbounded;  // of each directory; the others become its rest
  // Of the whole answer. Directories near the top are opened first.
  std::uint64_t entries_max = unbounded;
  std::uint64_t path_bytes_max = unbounded;
  // Asked again and again: true ends the query with Errc::interrupted.
  std::function<bool()> should_stop = {};
};

// A path as somebody gave it, normalised; "" for the root, which "", "." and "/" are. Fails as
// tracker::normalise_path() does.
base::Result<std::string> parse_usage_path(std::string_view raw);

// `path` must be normalised, or "" for the root. Nothing where no drive has the directory, as far as
// is known. Reads the children of each directory it opens, whatever lies below; keeps in memory no more than
// what is returned.
base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               const UsageOptions& options);

// Calls `visit` with the entry and all below it: each behind its parent, in order.
void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit);

}  // namespace spoor::scanner
