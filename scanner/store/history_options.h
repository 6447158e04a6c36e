#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace spoor::scanner {

// Of which directories a scan keeps the totals over time.
struct HistoryOptions {
  bool keep = false;                       // false: what is kept is removed
  std::uint32_t depth = 2;                 // of directories up to so many levels below the root
  std::vector<std::string> prefixes = {};  // and of these
  std::uint64_t paths_max = 1'000'000;
  std::uint64_t points_max = 20'000'000;  // of all directories
};

// Totals of one directory from which a scan warns. 0: no limit.
struct UsageLimit {
  std::string path = {};  // "" is everything
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  std::uint64_t growth_per_day = 0;  // bytes
  bool of_cluster = false;           // of the totals of all nodes

  friend bool operator==(const UsageLimit&, const UsageLimit&) = default;
};

}  // namespace spoor::scanner
