// The shell patterns (fnmatch) of namespace.exclude, split into components, so that a path is matched
// component by component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// How often a component was compared with a pattern: the cost of matching.
using Comparisons = std::uint64_t;

// A pattern for one component of a path.
class ComponentGlob {
 public:
  explicit ComponentGlob(std::string pattern);

  bool matches(std::string_view component, Comparisons& comparisons) const;

 private:
  std::string pattern_;
  // Literal prefix and suffix, compared before fnmatch() is called: most components differ there.
  std::size_t prefix_bytes_ = 0;  // before the first special character
  std::size_t suffix_bytes_ = 0;  // after the last one; 0 if a bracket or an escape makes it uncertain
  bool is_literal_ = false;
};

// A pattern with a slash, for the path from the root. Its wildcards do not match slashes.
class PathGlob {
 public:
  explicit PathGlob(const std::string& pattern);

  // Whether it matches the normalised path, or a directory above it. Stops at the first component that
  // differs.
  bool matches_path_or_above(std::string_view path, Comparisons& comparisons) const;

  // Whether it matches the path itself, which has `depth` components.
  bool matches(std::string_view path, std::size_t depth, Comparisons& comparisons) const;

 private:
  std::vector<ComponentGlob> components_;
  // Set if a slash may be escaped or between brackets: such a pattern can't be split, and is matched against
  // the path as a whole.
  std::string whole_;
};

}  // namespace spoor::tracker
