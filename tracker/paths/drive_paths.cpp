#include "tracker/paths/drive_paths.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/printable.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

DrivePaths::DrivePaths(const std::vector<std::filesystem::path>& drives) {
  for (const auto& drive : drives) {
    if (auto path = normalise_path(drive.native())) drives_.push_back(*std::move(path));
  }
}

std::string DrivePaths::refusal(std::string_view raw, std::string_view path) const {
  if (!raw.starts_with('/')) return {};
  for (const std::string& drive : drives_) {
    if (!path.starts_with(drive)) continue;
    if (path.size() > drive.size() && path[drive.size()] != '/') continue;
    const auto below = path.substr(std::min(path.size(), drive.size() + 1));
    return fmt::format("'{}' is on the drive /{}; give the path below it{}", base::printable(raw),
                       base::printable(drive),
                       below.empty() ? std::string() : fmt::format(": '{}'", base::printable(below)));
  }
  return {};
}

}  // namespace spoor::tracker
