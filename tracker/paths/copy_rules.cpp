#include "tracker/paths/copy_rules.h"

#include <fnmatch.h>

#include <algorithm>

#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

// The first ones: at most `count_max`.
std::vector<std::string> components_of(std::string_view path, std::size_t count_max) {
  std::vector<std::string> components;
  for (ComponentCursor at(path); components.size() < count_max && at.next();)
    components.emplace_back(at.component());
  return components;
}

// Whether the first `count` globs match the first `count` components.
bool do_match(const std::vector<std::string>& globs, const std::vector<std::string>& components,
              std::size_t count) {
  for (std::size_t at = 0; at < count; ++at) {
    if (::fnmatch(globs[at].c_str(), components[at].c_str(), 0) != 0) return false;
  }
  return true;
}

}  // namespace

CopyRules::CopyRules(const std::vector<Rule>& rules) {
  for (const Rule& rule : rules) {
    rules_.push_back({components_of(rule.path, rule.path.size()), rule.factor});
    deepest_ = std::max(deepest_, rules_.back().globs.size());
  }
}

std::optional<double> CopyRules::match(std::string_view path) const {
  if (path.empty()) return std::nullopt;
  const auto components = components_of(path, deepest_ + 1);
  for (const Components& rule : rules_) {
    const bool has_its_depth = rule.globs.size() == components.size();
    if (has_its_depth && do_match(rule.globs, components, components.size())) return rule.factor;
  }
  return std::nullopt;
}

double CopyRules::factor(std::string_view path) const {
  double lowest = 1;
  ComponentCursor at(path);
  for (std::size_t depth = 0; depth < deepest_ && at.next(); ++depth) {
    lowest = match(at.prefix()).value_or(lowest);
  }
  return lowest;
}

bool CopyRules::may_match_below(std::string_view path) const {
  if (rules_.empty()) return false;
  const auto components = components_of(path, deepest_);
  return std::ranges::any_of(rules_, [&](const Components& rule) {
    return rule.globs.size() > components.size() && do_match(rule.globs, components, components.size());
  });
}

}  // namespace spoor::tracker
