#include "tracker/paths/namespace_rules.h"

#include <fmt/core.h>
#include <fnmatch.h>

#include <algorithm>
#include <utility>

#include "base/checksum.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

constexpr std::string_view special = "*?[\\";

// Whether the component can be matched separately: all brackets are closed and contain neither a class nor an
// escape, and the slash after it is not escaped.
bool is_plain(std::string_view component) {
  if (component.ends_with('\\')) return false;
  for (std::size_t at = component.find('['); at != std::string_view::npos; at = component.find('[', at)) {
    ++at;
    if (at < component.size() && (component[at] == '!' || component[at] == '^')) ++at;
    const std::size_t end = component.find(']', at + 1);  // a first ']' is a member of the set
    if (end == std::string_view::npos) return false;
    if (component.substr(at, end - at).find_first_of("[\\") != std::string_view::npos) return false;
    at = end;
  }
  return true;
}

bool fits(const std::string& pattern, std::string_view text, int flags) {
  return ::fnmatch(pattern.c_str(), std::string(text).c_str(), flags) == 0;
}

bool is_reserved(std::string_view top_level_name) {
  return top_level_name == ".spoor" || top_level_name == ".minio.sys";
}

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

bool looks_like_ipv4(std::string_view name) {
  return std::count(name.begin(), name.end(), '.') == 3 &&
         std::all_of(name.begin(), name.end(), [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

}  // namespace

ComponentGlob::ComponentGlob(std::string pattern) : pattern_(std::move(pattern)) {
  prefix_bytes_ = std::min(pattern_.find_first_of(special), pattern_.size());
  is_literal_ = prefix_bytes_ == pattern_.size();
  // After a bracket or an escape it is uncertain which characters are literal.
  const bool has_known_end = pattern_.find_first_of("[\\") == std::string::npos;
  if (!is_literal_ && has_known_end) suffix_bytes_ = pattern_.size() - pattern_.find_last_of(special) - 1;
}

bool ComponentGlob::matches(std::string_view component) const {
  if (is_literal_) return component == pattern_;
  const std::string_view pattern = pattern_;
  if (!component.starts_with(pattern.substr(0, prefix_bytes_))) return false;
  if (!component.ends_with(pattern.substr(pattern.size() - suffix_bytes_))) return false;
  return fits(pattern_, component, 0);
}

PathGlob::PathGlob(const std::string& pattern) {
  for (std::size_t begin = 0; begin <= pattern.size();) {
    const std::size_t end = std::min(pattern.find('/', begin), pattern.size());
    std::string component = pattern.substr(begin, end - begin);
    if (!is_plain(component)) whole_ = pattern;
    components_.emplace_back(std::move(component));
    begin = end + 1;
  }
}

bool PathGlob::matches_path_or_above(std::string_view path) const {
  ComponentCursor at(path);
  if (!whole_.empty()) {
    for (std::size_t depth = 1; depth <= components_.size() && at.next(); ++depth) {
      if (matches(at.prefix(), depth)) return true;
    }
    return false;
  }
  return std::ranges::all_of(
      components_, [&](const ComponentGlob& glob) { return at.next() && glob.matches(at.component()); });
}

bool PathGlob::matches(std::string_view path, std::size_t depth) const {
  if (whole_.empty()) return components_.size() == depth && matches_path_or_above(path);
  // A slash of the pattern matches one of the path, or none if it is in brackets.
  return depth <= components_.size() && fits(whole_, path, FNM_PATHNAME);
}

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

bool NamespaceRules::ignores(std::string_view path) const {
  bool is_top_level = true;
  for (ComponentCursor at(path); at.next(); is_top_level = false) {
    if (ignores_name(at.component(), is_top_level)) return true;
    if (name_globs_.empty()) break;  // the other rules apply to the first component only
  }
  return std::ranges::any_of(path_globs_,
                             [&](const PathGlob& glob) { return glob.matches_path_or_above(path); });
}

bool NamespaceRules::ignores_child(std::string_view path, std::string_view name) const {
  if (ignores_name(name, path.size() == name.size())) return true;
  if (path_globs_.empty()) return false;
  const auto depth = static_cast<std::size_t>(std::count(path.begin(), path.end(), '/')) + 1;
  return std::ranges::any_of(path_globs_, [&](const PathGlob& glob) { return glob.matches(path, depth); });
}

bool NamespaceRules::ignores_name(std::string_view name, bool is_top_level) const {
  if (is_top_level && (is_reserved(name) || (options_.s3_bucket_names && !is_s3_bucket_name(name))))
    return true;
  return std::ranges::any_of(name_globs_, [&](const ComponentGlob& glob) { return glob.matches(name); });
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
