#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>

namespace spoor::tracker {

// Subtrees that may have changed anywhere: exact, unlike a filter. The root "" covers everything.
//
// No mark is ever dropped. Marks under another one are redundant and are not kept; beyond
// `count_max` marks, the deepest are joined to their parents, so that the set stays bounded and only
// ever covers more.
//
// Not thread-safe.
class TreeMarks {
 public:
  static constexpr std::size_t count_max = 10'000;

  // Returns whether the mark was new, that is, not covered before.
  bool add(std::string_view path);
  void merge(const TreeMarks& other);

  // Whether the path is a marked one or lies below one.
  bool covers(std::string_view path) const;

  // Whether a marked path lies strictly below the path: on the way to it the path must be read.
  bool has_below(std::string_view path) const;

  bool empty() const { return paths_.empty(); }
  std::size_t size() const { return paths_.size(); }
  auto begin() const { return paths_.begin(); }
  auto end() const { return paths_.end(); }

  friend bool operator==(const TreeMarks&, const TreeMarks&) = default;

 private:
  bool insert(std::string_view path);
  void join_deepest();

  std::set<std::string, std::less<>> paths_;
};

}  // namespace spoor::tracker
