#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "scanner/usage/usage_query.h"

namespace spoor::scanner {

// Adds up the totals that several nodes have of one directory, and of those below it, by path.
//
// Memory is bounded: directories beyond `entries_held_max` are summed in the rest of their parent, and owners
// beyond `owners_held_max` in the rest of the owners. Not thread-safe.
class UsageSum {
 public:
  static constexpr std::size_t entries_held_max = 100'000;
  static constexpr std::size_t path_bytes_held_max = 32U << 20U;
  static constexpr std::size_t owners_held_max = 100'000;

  // Adds what one node found. Entries that are not below their parent are ignored: they count in no sum.
  void add(const Usage& usage);

  // The sums, in the order and within the bounds of `options`. An entry that some node did not list, but may
  // have among those that it left out or could not read, is not complete, nor is what is below it.
  // Usage::as_of is the oldest of all nodes'.
  Usage result(const UsageOptions& options) const;

 private:
  struct Node {
    UsageFigures figures;
    std::int64_t mtime_ns = 0;
    bool is_open = false;
    UsageRest rest;
    std::size_t cut = 0;                   // nodes that may have more children than they list
    std::size_t listed_by_cut = 0;         // of those of its parent, which list this one
    std::map<std::string, Node> children;  // by path
  };

  void add(Node& node, const UsageEntry& entry);
  void add_owners(const Usage& usage);

  Node top_;
  std::string path_;
  std::size_t usages_ = 0;
  std::size_t absent_ = 0;
  std::size_t held_ = 0;
  std::size_t path_bytes_held_ = 0;
  bool has_as_of_ = true;
  base::WallTime as_of_ = base::WallTime::max();
  bool saw_everything_ = true;
  bool truncated_ = false;
  bool is_scanning_ = false;
  bool has_copy_rules_ = false;
  bool has_growth_ = true;                       // a history is kept on all nodes
  std::optional<base::WallTime> history_since_;  // the latest
  bool history_is_full_ = false;
  bool has_owners_ = true;  // they are kept on all nodes that have the directory
  bool owners_complete_ = true;
  Owners owners_;
  UsageOwners more_owners_;  // the rest alone
};

}  // namespace spoor::scanner
