#include "tracker/tree_marks.h"

#include <algorithm>
#include <utility>

#include "tracker/path.h"

namespace spoor::tracker {
namespace {

std::size_t depth(std::string_view path) {
  return path.empty() ? 0 : 1 + static_cast<std::size_t>(std::count(path.begin(), path.end(), '/'));
}

// Everything below `path` sorts from "path/" up to, and without, "path0": '0' follows '/'.
std::pair<std::string, std::string> range_below(std::string_view path) {
  return {std::string(path) + '/', std::string(path) + '0'};
}

}  // namespace

bool TreeMarks::add(std::string_view path) {
  const bool is_new = insert(path);
  if (paths_.size() > count_max) join_deepest();
  return is_new;
}

void TreeMarks::merge(const TreeMarks& other) {
  for (const std::string& path : other) add(path);
}

bool TreeMarks::insert(std::string_view path) {
  if (covers(path)) return false;
  if (path.empty()) {
    paths_.clear();
  } else {
    const auto [from, to] = range_below(path);
    paths_.erase(paths_.lower_bound(from), paths_.lower_bound(to));
  }
  paths_.emplace(path);
  return true;
}

bool TreeMarks::covers(std::string_view path) const {
  if (paths_.empty()) return false;
  if (paths_.contains(std::string_view{})) return true;
  for (ComponentCursor at(path); at.next();) {
    if (paths_.contains(at.prefix())) return true;
  }
  return false;
}

bool TreeMarks::has_below(std::string_view path) const {
  if (path.empty()) return !paths_.empty() && !paths_.contains(std::string_view{});
  const auto [from, to] = range_below(path);
  return paths_.lower_bound(from) != paths_.lower_bound(to);
}

// Joining down to three quarters keeps the cost of a stream of marks at the bound amortised.
void TreeMarks::join_deepest() {
  while (paths_.size() > count_max / 4 * 3) {
    std::size_t deepest = 0;
    for (const std::string& path : paths_) deepest = std::max(deepest, depth(path));
    std::set<std::string, std::less<>> joined;
    for (const std::string& path : paths_) {
      if (depth(path) == deepest) joined.emplace(parent_path(path));
    }
    for (const std::string& path : joined) insert(path);
  }
}

}  // namespace spoor::tracker
