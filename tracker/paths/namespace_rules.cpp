#include "tracker/paths/namespace_rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

bool is_reserved(std::string_view top_level_name) {
  return top_level_name == ".spoor" || top_level_name == ".minio.sys";
}

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool looks_like_ipv4(std::string_view name) {
  return std::count(name.begin(), name.end(), '.') == 3 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace

bool is_s3_bucket_name(std::string_view name) {
  if (name.size() < 3 || name.size() > 63) return false;
  if (!is_lower_or_digit(name.front()) || !is_lower_or_digit(name.back())) return false;
  if (name.find("..") != std::string_view::npos || looks_like_ipv4(name)) return false;
  return std::all_of(name.begin(), name.end(),
                     [](char c) { return is_lower_or_digit(c) || c == '.' || c == '-'; });
}

NamespaceRules::NamespaceRules(Options options) : options_(std::move(options)) {
  for (const std::string& glob : options_.exclude) {
    if (glob.find('/') == std::string::npos) {
      name_globs_.emplace_back(glob);
    } else {
      path_globs_.emplace_back(glob);
    }
  }
}

bool NamespaceRules::ignores(std::string_view path, Comparisons* comparisons) const {
  Comparisons uncounted = 0;
  Comparisons& count = comparisons == nullptr ? uncounted : *comparisons;
  bool is_top_level = true;
  for (ComponentCursor at(path); at.next(); is_top_level = false) {
    if (ignores_name(at.component(), is_top_level, count)) return true;
    if (name_globs_.empty()) break;  // the other rules apply to the first component only
  }
  return std::any_of(path_globs_.begin(), path_globs_.end(),
                     [&](const PathGlob& glob) { return glob.matches_path_or_above(path, count); });
}

bool NamespaceRules::ignores_child(std::string_view path, std::string_view name) const {
  Comparisons uncounted = 0;
  if (ignores_name(name, path.size() == name.size(), uncounted)) return true;
  if (path_globs_.empty()) return false;
  const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/')) + 1;
  return std::any_of(path_globs_.begin(), path_globs_.end(),
                     [&](const PathGlob& glob) { return glob.matches(path, depth, uncounted); });
}

bool NamespaceRules::ignores_name(std::string_view name, bool is_top_level, Comparisons& comparisons) const {
  if (is_top_level && (is_reserved(name) || (options_.s3_bucket_names && !is_s3_bucket_name(name))))
    return true;
  return std::any_of(name_globs_.begin(), name_globs_.end(),
                     [&](const ComponentGlob& glob) { return glob.matches(name, comparisons); });
}

std::string NamespaceRules::fingerprint() const {
  std::vector<std::string> globs = options_.exclude;
  std::sort(globs.begin(), globs.end());
  std::string text = options_.s3_bucket_names ? "s3" : "any";
  for (const std::string& glob : globs) text += fmt::format("|{}:{}", glob.size(), glob);
  return text;
}

std::uint64_t NamespaceRules::digest() const { return base::checksum(fingerprint()); }

}  // namespace spoor::tracker
