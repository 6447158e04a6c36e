#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::tracker {

// Recognises a file system path (`/mnt/disk1/bucket/x`) where a path of the namespace (`bucket/x`) is
// expected: a mark on it would have no effect.
//
// Immutable; thread-safe.
class DrivePaths {
 public:
  DrivePaths() = default;
  explicit DrivePaths(const std::vector<std::filesystem::path>& drives);

  // Why `raw` is refused, and which path to use instead; empty if it is valid. `path` is the normalised
  // `raw`. Only an absolute `raw` can be on a drive: a bucket may have the same name as a drive.
  std::string refusal(std::string_view raw, std::string_view path) const;

  // The path below its drive of an absolute `raw`. Fails with Errc::invalid_path if it is on no drive, or is
  // one.
  base::Result<std::string> below_drive(std::string_view raw, std::string_view path) const;

 private:
  struct Found {
    const std::string& drive;
    std::string_view below;  // empty: the drive itself
  };
  std::optional<Found> find(std::string_view path) const;

  std::vector<std::string> drives_;  // normalised, without "/"
  bool is_root_a_drive_ = false;
};

}  // namespace spoor::tracker
