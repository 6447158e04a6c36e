#include "tracker/filter/tree_marks.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>
#include <vector>

#include "base/number.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

bool is_at_or_below(std::string_view path, std::string_view top) {
  if (top.empty()) return true;
  return path.starts_with(top) && (path.size() == top.size() || path[top.size()] == '/');
}

// The number of leading components that the paths share. Neither path is the other one or above it.
std::size_t shared_components(std::string_view one, std::string_view other) {
  const auto differ = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first;
  return static_cast<std::size_t>(std::count(one.begin(), differ, '/'));
}

// The path's first `depth` components.
std::string_view cut(std::string_view path, std::size_t depth) {
  ComponentCursor at(path);
  for (std::size_t taken = 0; taken < depth; ++taken) {
    if (!at.next()) return path;
  }
  return at.prefix();
}

// What the set grows by if all marks are cut at one more component.
struct Growth {
  std::size_t marks = 0;
  std::size_t bytes = 0;
};

}  // namespace

bool TreeMarks::is_member(std::string_view path) { return is_at_or_below(path, member_top); }

const std::shared_ptr<const TreeMarks::Members>& TreeMarks::no_members() {
  static const auto none = std::make_shared<const Members>();
  return none;
}

// A path that is no record is one of members that are not known.
void TreeMarks::add_member(std::string_view path, Members& to) {
  const auto end = std::min(path.rfind('/'), path.size());
  const auto number = base::parse_number<std::uint64_t>(path.substr(std::min(end + 1, path.size())));
  std::uint64_t& known = to[std::string(number ? path.substr(0, end) : member_top)];
  known = std::max(known, number.value_or(0));
}

std::string TreeMarks::member_path(const Members::value_type& member) {
  return member.first == member_top ? member.first : member.first + '/' + std::to_string(member.second);
}

bool TreeMarks::holds(const Members& members, const Members::value_type& member) {
  const auto known = members.find(member.first);
  return known != members.end() && known->second >= member.second;
}

// The sets are small, and change when a member joins or starts.
void TreeMarks::add_members(const Members& more) {
  if (std::ranges::all_of(more, [&](const auto& member) { return holds(members(), member); })) return;
  auto all = std::make_shared<Members>(members());
  for (const auto& [key, number] : more) {
    std::uint64_t& known = (*all)[key];
    known = std::max(known, number);
  }
  if (all->size() > members_max || all->contains(member_top)) *all = {{std::string(member_top), 0}};
  members_ = std::move(all);
}

bool TreeMarks::add(std::string_view path) {
  const bool is_new = insert(path);
  bound();
  return is_new;
}

// In one pass over both sets: single insertions would move all later marks each time.
void TreeMarks::merge(const TreeMarks& other) {
  add_members(other.members());
  if (other.paths_.empty()) return;
  Paths both;
  both.reserve(paths_.size() + other.paths_.size());
  std::merge(paths_.begin(), paths_.end(), other.paths_.begin(), other.paths_.end(), std::back_inserter(both),
             [](const auto& one, const auto& two) { return is_before_in_walk(*one, *two); });
  paths_.clear();
  bytes_ = 0;
  for (auto& path : both) {
    if (!paths_.empty() && is_at_or_below(*path, *paths_.back())) continue;
    bytes_ += path->size();
    paths_.push_back(std::move(path));
  }
  bound();
}

TreeMarks::Paths::const_iterator TreeMarks::first_after(std::string_view path) const {
  return std::upper_bound(paths_.begin(), paths_.end(), path, [](std::string_view after, const auto& each) {
    return is_before_in_walk(after, *each);
  });
}

bool TreeMarks::insert(std::string_view path) {
  if (covers(path)) return false;
  if (is_member(path)) {
    Members member;
    add_member(path, member);
    add_members(member);
    return true;
  }
  const auto from = first_after(path);
  const auto to = std::partition_point(from, paths_.cend(),
                                       [&](const auto& each) { return is_at_or_below(*each, path); });
  for (auto below = from; below != to; ++below) bytes_ -= (*below)->size();
  paths_.insert(paths_.erase(from, to), std::make_shared<const std::string>(path));
  bytes_ += path.size();
  return true;
}

// No mark is below another one, so only the last mark that is not after the path can cover it.
bool TreeMarks::covers(std::string_view path) const {
  if (is_member(path)) {
    Members member;
    add_member(path, member);
    return members().contains(member_top) || holds(members(), *member.begin());
  }
  const auto after = first_after(path);
  return after != paths_.begin() && is_at_or_below(path, **std::prev(after));
}

bool TreeMarks::has_below(std::string_view path) const {
  const auto after = first_after(path);
  return after != paths_.end() && is_at_or_below(**after, path);
}

// Cuts all marks at the greatest depth at which at most three quarters of the bounds are used. A stream of
// marks at a bound thus costs only one pass for every quarter of a bound, however deep the marks are.
std::vector<std::string> TreeMarks::bound() {
  std::vector<std::string> ancestors;
  if (!exceeds_bound()) return ancestors;
  const std::size_t depth = depth_within_bounds();
  for (auto& path : paths_) {
    const std::string_view joined = cut(*path, depth);
    if (joined.size() == path->size()) continue;
    if (ancestors.empty() || ancestors.back() != joined) ancestors.emplace_back(joined);
    path = std::make_shared<const std::string>(joined);
  }
  const auto same = [](const auto& one, const auto& other) { return *one == *other; };
  paths_.erase(std::unique(paths_.begin(), paths_.end(), same), paths_.end());
  bytes_ = std::accumulate(begin(), end(), std::size_t{0},
                           [](std::size_t sum, const std::string& path) { return sum + path.size(); });
  return ancestors;
}

// The greatest depth at which the cut paths use at most three quarters of the bounds. To be called only if a
// bound is exceeded.
std::size_t TreeMarks::depth_within_bounds() const {
  // A mark cut at some depth differs from the previous mark if it shares fewer components with it.
  std::vector<Growth> growth(path_bytes_max + 1);
  std::string_view before;
  for (const std::string& path : *this) {
    const std::size_t shared = shared_components(before, path);
    ++growth[shared].marks;
    std::size_t depth = 0;
    std::size_t counted = 0;
    for (ComponentCursor at(path); at.next(); ++depth) {
      if (depth < shared) continue;
      growth[depth].bytes += at.prefix().size() - counted;
      counted = at.prefix().size();
    }
    before = path;
  }
  std::size_t depth = 0;
  for (Growth left = growth[0]; left.marks <= count_max / 4 * 3 && left.bytes <= bytes_max / 4 * 3;) {
    ++depth;
    left.marks += growth[depth].marks;
    left.bytes += growth[depth].bytes;
  }
  return depth;
}

}  // namespace spoor::tracker
