#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// Recognises a path of the file system (`/mnt/disk1/bucket/x`) where a path of the namespace (`bucket/x`) is
// expected: a mark on it would cover nothing.
//
// Immutable; thread-safe.
class DrivePaths {
 public:
  DrivePaths() = default;
  explicit DrivePaths(const std::vector<std::filesystem::path>& drives);

  // Why `raw` is refused, and what to give instead; empty where it is fine. `path` is `raw`, normalised. Only
  // an absolute `raw` can lie on a drive: a bucket may have a drive's name.
  std::string refusal(std::string_view raw, std::string_view path) const;

 private:
  std::vector<std::string> drives_;  // normalised
};

}  // namespace spoor::tracker
