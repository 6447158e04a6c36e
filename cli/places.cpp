#include "cli/places.h"

#include <filesystem>
#include <system_error>

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;

std::string with_slash(const fs::path& path) { return (path / "").lexically_normal().native(); }

}  // namespace

Places::Places(const GlobalOptions& global) {
  const auto config = global.load_config();
  if (!config) return;
  for (const fs::path& drive : config->drives) {
    tops_.push_back(with_slash(drive));
    std::error_code failure;
    const fs::path real = fs::canonical(drive, failure);
    if (!failure) tops_.push_back(with_slash(real));
  }
}

bool Places::is_from_here(std::string_view given) {
  return given == "." || given == ".." || given.starts_with("./") || given.starts_with("../");
}

std::optional<std::string> Places::logical_path(std::string_view given) const {
  const fs::path path(given);
  if (tops_.empty() || (!path.is_absolute() && !is_from_here(given))) return std::nullopt;
  std::error_code failure;
  const fs::path whole = path.is_absolute() ? path : fs::current_path(failure) / path;
  if (failure) return std::nullopt;
  if (auto found = find(with_slash(whole))) return found;
  const fs::path real = fs::weakly_canonical(whole, failure);
  return failure ? std::nullopt : find(with_slash(real));
}

std::optional<std::string> Places::find(const std::string& whole) const {
  for (const std::string& top : tops_) {
    if (whole.starts_with(top)) return whole.substr(top.size());
  }
  return std::nullopt;
}

}  // namespace spoor::cli
