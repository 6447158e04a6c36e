#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "watch/kernel_event.h"

namespace spoor::watch {

// Where the directory of an event is.
struct Place {
  std::string path = {};          // below the drive, empty for its top
  bool is_only_ancestor = false;  // the directory's own path is too long: it is somewhere below `path`
};

// Returns nullopt if the directory is gone or lies outside of the drive. Fails if that cannot be found out.
using ResolveHandle = std::function<base::Result<std::optional<Place>>(const DirectoryHandle& handle)>;

// Finds the directories of events on one drive, and caches their paths.
//
// A path is cached until some directory is renamed. This is right across renames of any ancestor: events
// arrive in order, and a rename marks all below the new name, so a cached path is used for earlier events
// only, whose changes that mark covers.
//
// Not thread-safe.
class DirectoryPaths {
 public:
  // The cache takes about `cache_bytes_max` at most.
  DirectoryPaths(ResolveHandle resolve, std::size_t cache_bytes_max)
      : resolve_(std::move(resolve)), cache_bytes_max_(cache_bytes_max) {}

  // As ResolveHandle.
  base::Result<std::optional<Place>> find(const DirectoryHandle& handle);

  // Some directory has another path now: nothing that was found before holds.
  void forget();

 private:
  const ResolveHandle resolve_;
  const std::size_t cache_bytes_max_;
  std::unordered_map<DirectoryHandle, std::optional<Place>> cache_;
  std::size_t cache_bytes_ = 0;
};

}  // namespace spoor::watch
