#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace spoor::tracker {

// The shell patterns (fnmatch) of `namespace.exclude` are matched component by component: a glob without a
// slash costs one comparison for each component of a path, one with slashes at most as many as it has
// components, however deep the path is.

// A pattern for one component of a path.
class ComponentGlob {
 public:
  explicit ComponentGlob(std::string pattern);

  bool matches(std::string_view component) const;

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
  bool matches_path_or_above(std::string_view path) const;

  // Whether it matches the path itself, which has `depth` components.
  bool matches(std::string_view path, std::size_t depth) const;

 private:
  std::vector<ComponentGlob> components_;
  // Set if a slash may be escaped or between brackets: such a pattern can't be split, and is matched against
  // the path as a whole.
  std::string whole_;
};

// Which paths Spoor ignores. Marks and scans use the same rules, so that a path that is not marked is not
// counted either.
//
// Immutable; thread-safe.
class NamespaceRules {
 public:
  struct Options {
    // Shell patterns (fnmatch). A pattern without a slash is matched against each component of a path, one
    // with a slash against the path from the root; its wildcards do not match slashes. A path that matches is
    // excluded with everything below it.
    std::vector<std::string> exclude;
    // Excludes paths whose first component is not a valid S3 bucket name.
    bool s3_bucket_names = false;
  };

  NamespaceRules() = default;
  explicit NamespaceRules(Options options);

  // Whether the normalised path, or a directory above it, is excluded.
  bool ignores(std::string_view path) const;

  // The number of globs that a path is matched against.
  std::size_t globs() const { return options_.exclude.size(); }

  // Whether a child of a directory that is not ignored is: a walk calls it as it descends. `path` is the
  // child's whole path, `name` its last component.
  bool ignores_child(std::string_view path, std::string_view name) const;

  // Differs for rules that ignore different paths: a scan whose rules differ from those of the last scan must
  // walk everything.
  std::string fingerprint() const;

  // The checksum of the fingerprint. Nodes compare it with each other.
  std::uint64_t digest() const;

 private:
  bool ignores_name(std::string_view name, bool is_top_level) const;

  Options options_;
  std::vector<ComponentGlob> name_globs_;  // those without a slash
  std::vector<PathGlob> path_globs_;
};

// Lower-case letters, digits, dots and hyphens, 3 to 63 of them, letters or digits at both ends, no
// two dots in a row, not formed like an IPv4 address (the rules of Amazon S3).
bool is_s3_bucket_name(std::string_view name);

}  // namespace spoor::tracker
