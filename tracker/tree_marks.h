#pragma once

#include <algorithm>
#include <boost/iterator/indirect_iterator.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// Subtrees that may have changed anywhere: exact, unlike a filter. The root "" covers everything.
//
// No mark is ever dropped. Marks under another one are redundant and are not kept; beyond
// `count_max` marks, the deepest are joined to their parents, so that the set stays bounded and only
// ever covers more.
//
// Copying is cheap (the paths are shared, and never change): it happens under the tracker's lock, at every
// save and every scan.
//
// Not thread-safe.
class TreeMarks {
  using Paths = std::vector<std::shared_ptr<const std::string>>;

 public:
  using Iterator = boost::indirect_iterator<Paths::const_iterator>;

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

  // The paths, sorted bytewise.
  Iterator begin() const { return Iterator(paths_.begin()); }
  Iterator end() const { return Iterator(paths_.end()); }

  friend bool operator==(const TreeMarks& one, const TreeMarks& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  }

 private:
  // The first path that is not before this one.
  Paths::const_iterator first_from(std::string_view path) const;
  bool contains(std::string_view path) const;
  bool insert(std::string_view path);
  void join_deepest();

  Paths paths_;
};

}  // namespace spoor::tracker
