#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// Which directories hold each byte of data several times, on all nodes together: replicas, erasure code.
//
// Immutable; thread-safe.
class CopyRules {
 public:
  struct Rule {
    std::string path = {};  // a glob for each component (fnmatch(3))
    double factor = 1;      // at least 1
    bool operator==(const Rule&) const = default;
  };

  CopyRules() = default;
  explicit CopyRules(const std::vector<Rule>& rules);

  bool empty() const { return rules_.empty(); }

  // The factor of the first rule that matches this directory itself; nothing if its parent's applies. `path`
  // is normalised.
  std::optional<double> match(std::string_view path) const;

  // The factor that applies to a directory: that of the lowest directory on its path with a match; else 1.
  double factor(std::string_view path) const;

  // Whether a rule may match a directory below this one.
  bool may_match_below(std::string_view path) const;

 private:
  struct Components {
    std::vector<std::string> globs;
    double factor;
  };
  std::vector<Components> rules_;
  std::size_t deepest_ = 0;  // the number of components of the longest glob
};

}  // namespace spoor::tracker
