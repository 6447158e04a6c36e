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

// Where a file is now whose event has another name, one that is gone (`entry`), or none (empty): a file keeps
// its first name for its open descriptors. nullopt: the name still leads to it, or it is gone or outside of
// the drive. Fails if that cannot be found out.
using ResolveFile =
    std::function<base::Result<std::optional<Place>>(const EntryName& entry, const FileHandle& file)>;

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
  DirectoryPaths(ResolveHandle resolve, ResolveFile resolve_file, std::size_t cache_bytes_max)
      : resolve_(std::move(resolve)),
        resolve_file_(std::move(resolve_file)),
        cache_bytes_max_(cache_bytes_max) {}

  // As ResolveHandle.
  base::Result<std::optional<Place>> find(const DirectoryHandle& handle) {
    const auto known = cache_.find(handle);
    if (known != cache_.end()) return known->second;
    auto place = resolve_(handle);
    if (!place) return place;
    if (cache_bytes_ > cache_bytes_max_) forget();
    constexpr std::size_t entry_bytes = 160;  // of one path, beside its texts
    cache_bytes_ += handle.size() + (*place ? (*place)->path.size() : 0) + entry_bytes;
    cache_.emplace(handle, *place);
    return place;
  }

  // As ResolveFile.
  base::Result<std::optional<Place>> find(const EntryName& entry, const FileHandle& file) const {
    return resolve_file_(entry, file);
  }

  // Some directory has another path now: nothing that was found before holds.
  void forget() {
    cache_.clear();
    cache_bytes_ = 0;
  }

 private:
  const ResolveHandle resolve_;
  const ResolveFile resolve_file_;
  const std::size_t cache_bytes_max_;
  std::unordered_map<DirectoryHandle, std::optional<Place>> cache_;
  std::size_t cache_bytes_ = 0;
};

}  // namespace spoor::watch
