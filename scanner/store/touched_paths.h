#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

#include "scanner/store/history_options.h"

namespace spoor::scanner {

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

}  // namespace spoor::scanner
