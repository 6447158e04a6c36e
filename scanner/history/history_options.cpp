#include "scanner/history/history_options.h"

#include <algorithm>

#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr std::size_t entry_bytes = 96;  // of the set, beside the path

// Whether the path has at most so many components. Reads no more of it than needed.
bool is_within(std::string_view path, std::uint32_t depth) {
  if (path.empty()) return true;
  for (std::size_t slash = 0; depth > 0; --depth, ++slash) {
    slash = path.find('/', slash);
    if (slash == std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

TouchedPaths::TouchedPaths(const HistoryOptions& options)
    : options_(options), prefixes_(options.prefixes.begin(), options.prefixes.end()) {}

bool TouchedPaths::keeps(std::string_view path) const {
  if (!options_.keep) return false;
  return is_within(path, options_.depth) || (!prefixes_.empty() && prefixes_.contains(path));
}

bool TouchedPaths::keeps_below(std::string_view path) const {
  if (keeps(path)) return true;
  if (!options_.keep || prefixes_.empty()) return false;
  const std::string below = std::string(path) + '/';
  const auto prefix = prefixes_.lower_bound(below);
  return prefix != prefixes_.end() && prefix->starts_with(below);
}

void TouchedPaths::add(std::string_view path) {
  if (!all_ && keeps(path)) add_to(changed_, path);
}

void TouchedPaths::add_erased(std::string_view path) {
  if (!all_ && keeps_below(path)) add_to(erased_, path);
}

void TouchedPaths::add_all() {
  all_ = true;
  changed_.clear();
  erased_.clear();
}

void TouchedPaths::add_to(Paths& paths, std::string_view path) {
  if (paths.contains(path)) return;
  bytes_ += entry_bytes + path.size();
  if (bytes_ > bytes_max) return add_all();
  paths.emplace(path);
}

}  // namespace spoor::scanner
