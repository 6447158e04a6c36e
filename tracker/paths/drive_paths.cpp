#include "tracker/paths/drive_paths.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/printable.h"
#include "tracker/errors.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {

DrivePaths::DrivePaths(const std::vector<std::filesystem::path>& drives) {
  for (const auto& drive : drives) {
    if (auto path = normalise_path(drive.native())) drives_.push_back(*std::move(path));
    is_root_a_drive_ = is_root_a_drive_ || drive == "/";
  }
}

std::optional<DrivePaths::Found> DrivePaths::find(std::string_view path) const {
  const std::string* inner = nullptr;  // a drive may be mounted below another one
  for (const std::string& drive : drives_) {
    if (!path.starts_with(drive)) continue;
    if (path.size() > drive.size() && path[drive.size()] != '/') continue;
    if (inner == nullptr || drive.size() > inner->size()) inner = &drive;
  }
  if (inner == nullptr) return std::nullopt;
  return Found{*inner, path.substr(std::min(path.size(), inner->size() + 1))};
}

std::string DrivePaths::refusal(std::string_view raw, std::string_view path) const {
  const auto found = raw.starts_with('/') ? find(path) : std::nullopt;
  if (!found) return {};
  return fmt::format(
      "'{}' is on the drive /{}; give the path below it{}", base::printable(raw),
      base::printable(found->drive),
      found->below.empty() ? std::string() : fmt::format(": '{}'", base::printable(found->below)));
}

base::Result<std::string> DrivePaths::below_drive(std::string_view raw, std::string_view path) const {
  const auto found = find(path);
  if (found && !found->below.empty()) return std::string(found->below);
  if (!found && is_root_a_drive_) return std::string(path);
  return base::Error(
      Errc::invalid_path,
      found ? fmt::format("'{}' is a drive; 'spoor scan --full' reads all of it", base::printable(raw))
            : fmt::format("'{}' is on none of the drives of this node", base::printable(raw)));
}

}  // namespace spoor::tracker
