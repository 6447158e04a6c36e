#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/history/history_point.h"
#include "scanner/store/owner_sums.h"
#include "scanner/store/usage_database.h"
#include "tracker/paths/copy_rules.h"

namespace spoor::scanner {

enum class UsageOrder {
  size,  // apparent size, the largest first
  files,
  name,
  growth,  // in bytes, the largest change first, of either sign; those without history last
};

// Who owns the files of a directory and of all below it.
struct UsageOwners {
  std::vector<OwnerEntry> list;  // in the requested order; by growth as by size, by name as by the ids
  std::uint64_t rest_count = 0;  // further owners
  OwnedTotals rest;              // of them
  // Whether an owner's figures contain all of its files.
  bool complete = true;
};

// The totals of one or several directories.
struct UsageFigures {
  std::uint64_t files = 0;
  std::uint64_t dirs = 0;  // below them, not including themselves; one that exists on two drives counts twice
  std::uint64_t bytes = 0;
  std::uint64_t allocated = 0;
  // Whether no part of it, on any drive, was left for the next scan.
  bool complete = true;
  // Of `bytes`, those in directories with a factor above 1 (copy_rules.h), by factor.
  std::map<double, std::uint64_t> copied = {};
  // Since UsageOptions::since; nothing if no history of it is kept. Those of a rest are added up; nothing if
  // one of them is unknown.
  std::optional<UsageGrowth> growth = {};

  // `bytes`, with each declared copy counted once.
  std::uint64_t logical_bytes() const;

  // Whether a sum has reached sum_max.
  bool is_saturated() const { return files == sum_max || bytes == sum_max || allocated == sum_max; }

  // Adds all but the growth.
  void add(const UsageFigures& other);
};

// The sum of the children of a directory that are not listed in the result.
struct UsageRest : UsageFigures {
  std::uint64_t count = 0;
};

// The totals of one logical directory, summed over all drives that have it.
struct UsageEntry : UsageFigures {
  std::string path;           // "" is the root
  std::uint64_t depth = 0;    // relative to the requested directory, which has 0
  std::int64_t mtime_ns = 0;  // the newest in the subtree

  // Whether `children` and `rest` were read; false at the requested depth.
  bool is_open = false;
  // Some drive could not read it, or a directory above it: children may be missing.
  bool is_unread = false;
  std::vector<UsageEntry> children;  // in the requested order
  UsageRest rest;                    // the other children
};

struct Usage {
  UsageEntry total;
  // The start of the last scan that saw everything: all peers responded, or it walked everything. Nothing if
  // there was none yet.
  std::optional<base::WallTime> as_of;
  // Whether the last scan saw everything. If not, the marks of a peer are still to be walked, anywhere.
  bool saw_everything = false;
  // Whether a scan that has not ended, running or killed, has committed some newer totals among these.
  bool is_scanning = false;
  std::optional<base::WallTime> since;  // UsageOptions::since
  // When the history begins; nothing if none is kept. Only with UsageOptions::since.
  std::optional<base::WallTime> history_since;
  // Whether some directories have no history because of its bounds. Only with UsageOptions::since.
  bool history_is_full = false;
  // Whether a bound on the whole result was reached: some directories have fewer children than requested, or
  // were not opened.
  bool truncated = false;
  // No drive has the directory: all figures are 0. Only if UsageOptions::absent_is_empty.
  bool is_absent = false;
  bool has_copy_rules = false;
  bool with_owners = false;  // UsageOptions::owners
  // Nothing if those of the directory are not kept, or one of its totals has reached sum_max.
  std::optional<UsageOwners> owners;

  // Whether the figures of an entry or a rest contain every change up to the last scan.
  bool is_complete(const UsageFigures& figures) const { return figures.complete && saw_everything; }
  // The same of its owners.
  bool is_complete(const UsageOwners& its) const { return its.complete && is_complete(total); }
};

// Keeps the first of the added items in an order.
//
// Not thread-safe.
template <class Item>
class FirstOf {
 public:
  using Before = std::function<bool(const Item& a, const Item& b)>;

  FirstOf(std::uint64_t count_max, Before is_before)
      : count_max_(count_max), is_before_(std::move(is_before)) {}

  // Returns the item that is left out, if there are too many.
  std::optional<Item> add(Item item) {
    items_.push_back(std::move(item));
    std::push_heap(items_.begin(), items_.end(), is_before_);
    if (items_.size() <= count_max_) return std::nullopt;
    std::pop_heap(items_.begin(), items_.end(), is_before_);
    std::optional<Item> last(std::move(items_.back()));
    items_.pop_back();
    return last;
  }

  // Returns them in order. Call last.
  std::vector<Item> take() {
    std::sort_heap(items_.begin(), items_.end(), is_before_);
    return std::move(items_);
  }

 private:
  const std::uint64_t count_max_;
  const Before is_before_;
  std::vector<Item> items_;  // a heap with the last one in the order on top
};

// Keeps the first owners in an order, and sums up the others.
//
// Not thread-safe.
class FirstOwners {
 public:
  FirstOwners(UsageOrder order, std::uint64_t count_max);

  void add(const OwnerEntry& entry);

  // Call last.
  UsageOwners take();

 private:
  FirstOf<OwnerEntry> first_;
  UsageOwners owners_;
};

// Accepts "size", "files", "name" and "growth"; nothing for other text.
std::optional<UsageOrder> parse_usage_order(std::string_view text);

// Sums up an entry that is not listed.
void add_to_rest(UsageRest& rest, const UsageEntry& entry);

// A strict order: of the directories with the same figure, by path.
bool is_before(UsageOrder order, const UsageEntry& a, const UsageEntry& b);

struct UsageOptions {
  static constexpr std::uint64_t unbounded = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t depth = 1;
  UsageOrder order = UsageOrder::size;
  // Compares with the totals at this time; deleted directories of then are listed.
  std::optional<base::WallTime> since = {};
  // Of each directory; the others are summed in its rest. Likewise of owners.
  std::uint64_t children_max = unbounded;
  bool owners = false;  // finds the owners of the files of the requested directory
  // Of the whole result. Directories near the top are opened first.
  std::uint64_t entries_max = unbounded;
  std::uint64_t path_bytes_max = unbounded;
  tracker::CopyRules copies = {};
  bool absent_is_empty = false;  // a directory that no drive has is found, with figures of 0
  // Called for each child read: true ends the query with Errc::interrupted.
  std::function<bool()> should_stop = {};
};

// Normalises a path from outside. Returns "" for the root, written as "", "." or "/". Fails as
// tracker::normalise_path() does.
base::Result<std::string> parse_usage_path(std::string_view raw);

// `path` must be normalised, or "" for the root. Nothing if no drive has the directory, as of the last scan.
// Reads all children of each directory that it opens, but not what is below them; memory is bounded by the
// size of the result.
base::Result<std::optional<Usage>> query_usage(UsageDatabase& database, std::string_view path,
                                               const UsageOptions& options);

// Calls `visit` for the directory and all below it, in the order of a walk, until it returns false. The
// usage, whose total is the directory, has what holds for all entries; these have no children. Memory does
// not grow with their number. Nothing if no drive has the directory. Options of which directories to list,
// and `since`, have no effect.
base::Result<std::optional<Usage>> visit_usage(
    UsageDatabase& database, std::string_view path, const UsageOptions& options,
    const std::function<bool(const Usage&, const UsageEntry&)>& visit);

struct UsageHistory {
  std::optional<base::WallTime> recorded_since;  // nothing: none is kept of any directory
  std::optional<base::WallTime> as_of;           // the start of the last scan
  bool is_full = false;                          // some directories were refused a history because of a bound
  HistoryPoints points;                          // of the directory; empty if none is kept of it
};

// The points of the directory, from the one that holds at `since` on, the newest `count_max` of them. `path`
// as for query_usage().
base::Result<UsageHistory> query_history(UsageDatabase& database, std::string_view path,
                                         std::optional<base::WallTime> since, std::size_t count_max);

// Calls `visit` for the entry and all below it, in order, each after its parent.
void for_each_entry(const UsageEntry& entry, const std::function<void(const UsageEntry&)>& visit);

}  // namespace spoor::scanner
