#include "tracker/paths/path_glob.h"

#include <fnmatch.h>

#include <algorithm>
#include <utility>

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

}  // namespace

ComponentGlob::ComponentGlob(std::string pattern) : pattern_(std::move(pattern)) {
  prefix_bytes_ = std::min(pattern_.find_first_of(special), pattern_.size());
  is_literal_ = prefix_bytes_ == pattern_.size();
  // After a bracket or an escape it is uncertain which characters are literal.
  const bool has_known_end = pattern_.find_first_of("[\\") == std::string::npos;
  if (!is_literal_ && has_known_end) suffix_bytes_ = pattern_.size() - pattern_.find_last_of(special) - 1;
}

bool ComponentGlob::matches(std::string_view component, Comparisons& comparisons) const {
  ++comparisons;
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

bool PathGlob::matches_path_or_above(std::string_view path, Comparisons& comparisons) const {
  ComponentCursor at(path);
  if (!whole_.empty()) {
    for (std::size_t depth = 1; depth <= components_.size() && at.next(); ++depth) {
      if (matches(at.prefix(), depth, comparisons)) return true;
    }
    return false;
  }
  return std::all_of(components_.begin(), components_.end(), [&](const ComponentGlob& glob) {
    return at.next() && glob.matches(at.component(), comparisons);
  });
}

bool PathGlob::matches(std::string_view path, std::size_t depth, Comparisons& comparisons) const {
  if (whole_.empty()) return components_.size() == depth && matches_path_or_above(path, comparisons);
  // A slash of the pattern matches one of the path, or none if it is in brackets.
  if (depth > components_.size()) return false;
  ++comparisons;
  return fits(whole_, path, FNM_PATHNAME);
}

}  // namespace spoor::tracker
