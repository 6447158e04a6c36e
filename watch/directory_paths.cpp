#include "watch/directory_paths.h"

namespace spoor::watch {
namespace {

// Of one cached path, beside its texts.
constexpr std::size_t entry_bytes = 160;

}  // namespace

base::Result<std::optional<Place>> DirectoryPaths::find(const DirectoryHandle& handle) {
  const auto known = cache_.find(handle);
  if (known != cache_.end()) return known->second;
  auto place = resolve_(handle);
  if (!place) return place;
  if (cache_bytes_ > cache_bytes_max_) forget();
  cache_bytes_ += handle.size() + (*place ? (*place)->path.size() : 0) + entry_bytes;
  cache_.emplace(handle, *place);
  return place;
}

void DirectoryPaths::forget() {
  cache_.clear();
  cache_bytes_ = 0;
}

}  // namespace spoor::watch
