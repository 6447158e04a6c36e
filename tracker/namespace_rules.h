#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "tracker/path_glob.h"

namespace spoor::tracker {

// Which paths Spoor takes no notice of: the same for whoever marks and for the scanner, so that
// what is not marked is not counted either.
//
// Immutable; thread-safe.
class NamespaceRules {
 public:
  struct Options {
    // Shell patterns (fnmatch). One without a slash is held against each component of a path, one
    // with a slash against the path from the root, its wildcards not crossing slashes. What matches
    // is excluded with everything below it.
    std::vector<std::string> exclude;
    // Excludes paths whose first component is no valid S3 bucket name.
    bool s3_bucket_names = false;
  };

  NamespaceRules() = default;
  explicit NamespaceRules(Options options);

  // Whether the normalised path, or a directory above it, is excluded. A glob without a slash is held against
  // each component of the path once; one with slashes costs at most as many comparisons as it has components,
  // however deep the path is. Adds them to `comparisons`, if given.
  bool ignores(std::string_view path, Comparisons* comparisons = nullptr) const;

  // How many globs a path is held against.
  std::size_t globs() const { return options_.exclude.size(); }

  // The same for the child of a directory that is itself not ignored: what a walk asks as it
  // descends. `path` is the child's whole path, `name` its last component.
  bool ignores_child(std::string_view path, std::string_view name) const;

  // Changes whenever a change of the rules changes what is ignored: a scan under other rules than
  // the last one's must walk everything.
  std::string fingerprint() const;

  // The checksum of the fingerprint: what nodes tell each other.
  std::uint64_t digest() const;

 private:
  bool ignores_name(std::string_view name, bool is_top_level, Comparisons& comparisons) const;

  Options options_;
  std::vector<ComponentGlob> name_globs_;  // those without a slash
  std::vector<PathGlob> path_globs_;
};

// Lower-case letters, digits, dots and hyphens, 3 to 63 of them, letters or digits at both ends, no
// two dots in a row, not formed like an IPv4 address (the rules of Amazon S3).
bool is_s3_bucket_name(std::string_view name);

}  // namespace spoor::tracker
