#include "tracker/tree_marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tracker/path.h"

namespace spoor::tracker {
namespace {

// How many components the paths have in common from the top; neither is the other or above it.
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
  if (paths_.empty()) {
    *this = other;
    return;
  }
  for (const std::string& path : other) add(path);
}

TreeMarks::Paths::const_iterator TreeMarks::first_from(std::string_view path) const {
  return std::lower_bound(paths_.begin(), paths_.end(), path,
                          [](const auto& each, std::string_view from) { return *each < from; });
}

bool TreeMarks::contains(std::string_view path) const {
  const auto found = first_from(path);
  return found != paths_.end() && **found == path;
}

bool TreeMarks::insert(std::string_view path) {
  if (covers(path)) return false;
  if (path.empty()) {
    paths_.clear();
  } else {
    const auto [from, to] = range_below(path);
    paths_.erase(first_from(from), first_from(to));
  }
  paths_.insert(first_from(path), std::make_shared<const std::string>(path));
  return true;
}

bool TreeMarks::covers(std::string_view path) const {
  if (paths_.empty()) return false;
  if (contains({})) return true;
  for (ComponentCursor at(path); at.next();) {
    if (contains(at.prefix())) return true;
  }
  return false;
}

bool TreeMarks::has_below(std::string_view path) const {
  if (path.empty()) return !paths_.empty() && !contains({});
  const auto [from, to] = range_below(path);
  return first_from(from) != first_from(to);
}

// Cuts all marks at the greatest depth at which three quarters of the bound remain, so that a stream
// of marks at the bound costs little more than one that is not. One pass, however deep they are.
void TreeMarks::join_deepest() {
  // In this order a mark is the first of its kind, cut at some depth, if it shares fewer components
  // than that with the mark before it.
  std::vector<std::size_t> first_of_kind(path_bytes_max + 1);
  std::string_view before;
  for (const std::string& path : *this) {
    ++first_of_kind[shared_components(before, path)];
    before = path;
  }
  std::size_t depth = 0;
  for (std::size_t left = first_of_kind[0]; left <= count_max / 4 * 3; left += first_of_kind[depth]) ++depth;
  for (auto& path : paths_) {
    const std::string_view joined = cut(*path, depth);
    if (joined.size() != path->size()) path = std::make_shared<const std::string>(joined);
  }
  // Cut paths can sort otherwise: "a!/b" comes before "a/b", "a!" behind "a".
  std::sort(paths_.begin(), paths_.end(), [](const auto& one, const auto& other) { return *one < *other; });
  const auto same = [](const auto& one, const auto& other) { return *one == *other; };
  paths_.erase(std::unique(paths_.begin(), paths_.end(), same), paths_.end());
}

}  // namespace spoor::tracker
