// The shell patterns (fnmatch) of namespace.exclude, taken apart once, so that a path is held against them
// component by component.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// How often a component was held against a pattern: what matching costs.
using Comparisons = std::uint64_t;

// A pattern for one component of a path.
class ComponentGlob {
 public:
  explicit ComponentGlob(std::string pattern);

  bool matches(std::string_view component, Comparisons& comparisons) const;

 private:
  std::string pattern_;
  // Most components differ here, which spares them fnmatch.
  std::size_t prefix_bytes_ = 0;  // of the pattern, before the first special character
  std::size_t suffix_bytes_ = 0;  // behind the last one; 0 where that can't be known
  bool is_literal_ = false;
};

// A pattern with a slash, for the path from the root. Its wildcards do not cross slashes.
class PathGlob {
 public:
  explicit PathGlob(const std::string& pattern);

  // Whether it matches the normalised path, or a directory above it. Stops at the first component that
  // differs.
  bool matches_path_or_above(std::string_view path, Comparisons& comparisons) const;

  // Whether it matches the path itself, which has so many components.
  bool matches(std::string_view path, std::size_t depth, Comparisons& comparisons) const;

 private:
  std::vector<ComponentGlob> components_;
  // Set where a slash may be escaped or stand between brackets: such a pattern can't be taken apart, and is
  // held against the path as a whole.
  std::string whole_;
};

}  // namespace spoor::tracker
