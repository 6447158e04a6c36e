#include "cli/program/places.h"

#include <filesystem>
#include <system_error>

namespace spoor::cli {
namespace {

namespace fs = std::filesystem;

std::string with_slash(const fs::path& path) { return (path / "").lexically_normal().native(); }

std::optional<std::string> path_below(const std::vector<std::string>& tops, const fs::path& whole) {
  const std::string path = with_slash(whole);
  for (const std::string& top : tops) {
    if (path.starts_with(top)) return path.substr(top.size());
  }
  return std::nullopt;
}

std::vector<std::string> without_links(const std::vector<std::string>& tops) {
  std::vector<std::string> real_tops;
  for (const std::string& top : tops) {
    std::error_code failure;
    const fs::path real = fs::canonical(top, failure);
    if (!failure) real_tops.push_back(with_slash(real));
  }
  return real_tops;
}

}  // namespace

Places::Places(const GlobalOptions& global) {
  const auto config = global.load_config();
  if (!config) return;
  for (const fs::path& drive : config->drives) tops_.push_back(with_slash(drive));
}

bool Places::is_from_here(std::string_view given) {
  return given == "." || given == ".." || given.starts_with("./") || given.starts_with("../");
}

std::optional<std::string> Places::logical_path(std::string_view given) {
  const fs::path path(given);
  if (tops_.empty() || (!path.is_absolute() && !is_from_here(given))) return std::nullopt;
  std::error_code failure;
  const fs::path whole = path.is_absolute() ? path : fs::current_path(failure) / path;
  if (failure) return std::nullopt;
  if (auto found = path_below(tops_, whole)) return found;
  const fs::path real = fs::weakly_canonical(whole, failure);
  if (failure) return std::nullopt;
  if (!real_tops_) real_tops_ = without_links(tops_);
  return path_below(*real_tops_, real);
}

}  // namespace spoor::cli
