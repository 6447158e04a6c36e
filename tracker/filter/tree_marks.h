#pragma once

#include <algorithm>
#include <boost/iterator/indirect_iterator.hpp>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace spoor::tracker {

// Subtrees that may have changed anywhere: exact, unlike a filter. The root "" covers everything.
//
// The set never covers less than what was added. Marks below another one are redundant and are not kept;
// beyond `count_max` marks, or `bytes_max` bytes of their paths, the deepest marks are joined to their
// ancestors, so that the set stays bounded.
//
// Copying is cheap, since paths are immutable and shared: every save and every scan copies the set under the
// tracker's lock.
//
// Records of members (tracker/cycles/member_marks.h) are paths below member_top, where no directory of a user
// is ever marked: a key, and a number as the last component, of which the largest is kept. They are kept
// apart: the root does not cover them, and they are not joined. Beyond members_max, member_top itself takes
// their place: members are not known.
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
  static constexpr std::string_view member_top = ".spoor";
  static constexpr std::size_t members_max = 10'000;
  static constexpr std::size_t member_bytes_max = 350;  // of the path of one, with its length

  // add() and merge() keep the bounds. add() returns whether the path was not covered before.
  bool add(std::string_view path);
  void merge(const TreeMarks& other);

  // The two steps of add(): insert() may exceed a bound by one mark, bound() joins marks and returns the
  // ancestors that they were joined to.
  bool insert(std::string_view path);
  std::vector<std::string> bound();
  bool exceeds_bound() const { return paths_.size() > count_max || bytes_ > bytes_max; }

  // Whether the path is marked or is below a marked path.
  bool covers(std::string_view path) const;

  // Whether a marked path is strictly below the path: the path must be read on the way to it.
  bool has_below(std::string_view path) const;

  bool empty() const { return paths_.empty() && members().empty(); }
  std::size_t size() const { return paths_.size(); }
  // The size of all paths together.
  std::size_t bytes() const { return bytes_; }

  // The paths, sorted component by component, each of them bytewise: the paths below a path follow it
  // directly.
  Iterator begin() const { return Iterator(paths_.begin()); }
  Iterator end() const { return Iterator(paths_.end()); }

  using Members = std::map<std::string, std::uint64_t, std::less<>>;  // the number of each key
  const Members& members() const { return *members_; }
  static bool is_member(std::string_view path);
  static void add_member(std::string_view path, Members& to);
  static std::string member_path(const Members::value_type& member);
  // Whether the record, or one with a larger number, is among them.
  static bool holds(const Members& members, const Members::value_type& member);
  void add_members(const Members& more);
  void drop_members() { members_ = no_members(); }

  friend bool operator==(const TreeMarks& one, const TreeMarks& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end()) && one.members() == other.members();
  }

 private:
  // The first mark after `path` in the order.
  Paths::const_iterator first_after(std::string_view path) const;
  std::size_t depth_within_bounds() const;

  Paths paths_;
  std::size_t bytes_ = 0;
  std::shared_ptr<const Members> members_ = no_members();

  static const std::shared_ptr<const Members>& no_members();
};

}  // namespace spoor::tracker
