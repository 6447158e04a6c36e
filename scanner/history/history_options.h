#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
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

// The directories whose totals a scan may have changed, of those of which a history is kept. Memory is
// bounded: beyond that, any directory may have changed.
//
// Not thread-safe.
class TouchedPaths {
 public:
  static constexpr std::size_t bytes_max = 16U << 20U;

  // `options` must outlive it.
  explicit TouchedPaths(const HistoryOptions& options);

  // Whether a history of the directory is kept.
  bool keeps(std::string_view path) const;
  // Whether a history of the directory, or of one below it, is kept.
  bool keeps_below(std::string_view path) const;

  void add(std::string_view path);
  // The directory and all below it were removed, from one drive at least.
  void add_erased(std::string_view path);
  void add_all();

  // Any directory may have changed: the two sets below are empty.
  bool all() const { return all_; }
  const std::set<std::string, std::less<>>& changed() const { return changed_; }
  const std::set<std::string, std::less<>>& erased() const { return erased_; }

 private:
  using Paths = std::set<std::string, std::less<>>;

  void add_to(Paths& paths, std::string_view path);

  const HistoryOptions& options_;
  const Paths prefixes_;
  Paths changed_;
  Paths erased_;
  std::size_t bytes_ = 0;
  bool all_ = false;
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
