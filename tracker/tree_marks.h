#pragma once

#include <algorithm>
#include <boost/iterator/indirect_iterator.hpp>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// Subtrees that may have changed anywhere: exact, unlike a filter. The root "" covers everything.
//
// No mark is ever dropped. Marks under another one are redundant and are not kept; beyond `count_max` marks,
// or `bytes_max` bytes of their paths, the deepest are joined to their ancestors, so that the set stays
// bounded and only ever covers more.
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
  // 104 bytes for each of count_max. With 16 closed cycles that is 17 MiB in each snapshot, and twice that in
  // memory.
  static constexpr std::size_t bytes_max = std::size_t{1} << 20U;
  static constexpr std::size_t no_bytes_max = std::numeric_limits<std::size_t>::max();

  // Both stay within the bounds. add() returns whether the mark was new, that is, not covered before.
  bool add(std::string_view path, std::size_t bytes_at_most = bytes_max);
  void merge(const TreeMarks& other);

  // The two steps of add(): the first may exceed a bound by one mark, the second returns the ancestors that
  // it joined others to.
  bool insert(std::string_view path);
  std::vector<std::string> bound(std::size_t bytes_at_most = bytes_max);
  bool exceeds(std::size_t bytes_at_most) const {
    return paths_.size() > count_max || bytes_ > bytes_at_most;
  }

  // Whether the path is a marked one or lies below one.
  bool covers(std::string_view path) const;

  // Whether a marked path lies strictly below the path: on the way to it the path must be read.
  bool has_below(std::string_view path) const;

  bool empty() const { return paths_.empty(); }
  std::size_t size() const { return paths_.size(); }
  // Of all paths together.
  std::size_t bytes() const { return bytes_; }

  // The paths, sorted component by component, each of them bytewise: what lies below a path follows it at
  // once.
  Iterator begin() const { return Iterator(paths_.begin()); }
  Iterator end() const { return Iterator(paths_.end()); }

  friend bool operator==(const TreeMarks& one, const TreeMarks& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end());
  }

 private:
  // The first path that comes after this one.
  Paths::const_iterator first_after(std::string_view path) const;
  std::size_t depth_within(std::size_t bytes_at_most) const;

  Paths paths_;
  std::size_t bytes_ = 0;
};

}  // namespace spoor::tracker
