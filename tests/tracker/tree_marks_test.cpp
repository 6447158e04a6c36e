#include "tracker/filter/tree_marks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/sanitizer.h"
#include "tests/tracker/samples.h"
#include "tracker/paths/path.h"

namespace spoor::tracker {
namespace {

bool lies_below(std::string_view path, std::string_view top) {
  if (top.empty()) return !path.empty();
  return path.size() > top.size() && path.starts_with(top) && path[top.size()] == '/';
}

// All marks ever made, and the answers by their definition.
struct Oracle {
  std::vector<std::string> marked;

  bool covers(std::string_view path) const {
    return std::any_of(marked.begin(), marked.end(),
                       [&](const std::string& mark) { return path == mark || lies_below(path, mark); });
  }
  bool has_below(std::string_view path) const {
    return std::any_of(marked.begin(), marked.end(),
                       [&](const std::string& mark) { return lies_below(mark, path); });
  }
};

TEST(TreeMarksTest, NewSet_CoversNothing) {
  const TreeMarks marks;
  EXPECT_FALSE(marks.covers(""));
  EXPECT_FALSE(marks.covers("bucket"));
  EXPECT_FALSE(marks.has_below(""));
}

TEST(TreeMarksTest, TreeMark_CoversPathAndAllBelow) {
  TreeMarks marks;
  EXPECT_TRUE(marks.add("bucket/a"));
  EXPECT_TRUE(marks.covers("bucket/a"));
  EXPECT_TRUE(marks.covers("bucket/a/b/c"));
}

TEST(TreeMarksTest, TreeMark_DoesNotCoverParentsOrSiblings) {
  TreeMarks marks;
  marks.add("bucket/a");
  for (const std::string_view path :
       {"", "bucket", "bucket/b", "bucket/ab", "bucket/a-", "bucket/a.x", "bucket/a0", "a"}) {
    EXPECT_FALSE(marks.covers(path)) << path;
  }
}

TEST(TreeMarksTest, HasBelow_IsTrueForEveryParent) {
  TreeMarks marks;
  marks.add("bucket/a/b");
  for (const std::string_view path : {"", "bucket", "bucket/a"}) EXPECT_TRUE(marks.has_below(path)) << path;
}

TEST(TreeMarksTest, HasBelow_IsFalseForMarkItselfAndSiblings) {
  TreeMarks marks;
  marks.add("bucket/a/b");
  for (const std::string_view path :
       {"bucket/a/b", "bucket/a/b/c", "bucket/b", "buck", "bucket/a/", "bucket/a0"}) {
    EXPECT_FALSE(marks.has_below(path)) << path;
  }
}

TEST(TreeMarksTest, RootMark_CoversEverything) {
  TreeMarks marks;
  marks.add("bucket/a");
  EXPECT_TRUE(marks.add(""));
  EXPECT_TRUE(marks.covers(""));
  EXPECT_TRUE(marks.covers("anything/at/all"));
  EXPECT_EQ(marks.size(), 1U);
}

TEST(TreeMarksTest, MarkBelowAnother_IsNotAdded) {
  TreeMarks marks;
  marks.add("bucket/a");
  EXPECT_FALSE(marks.add("bucket/a"));
  EXPECT_FALSE(marks.add("bucket/a/b"));
  EXPECT_EQ(marks.size(), 1U);
}

TEST(TreeMarksTest, MarkAboveOthers_ReplacesThem) {
  TreeMarks marks;
  marks.add("bucket/a/b");
  marks.add("bucket/a/c");
  marks.add("bucket/a0");
  marks.add("bucket/a-");
  EXPECT_TRUE(marks.add("bucket/a"));
  EXPECT_EQ(marks.size(), 3U) << "those beside it stay";
}

TEST(TreeMarksTest, RandomMarks_MatchTheOracle) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 150; ++round) {
    TreeMarks marks;
    Oracle oracle;
    for (std::uint64_t n = random.below(30); n > 0; --n) {
      const std::string path = random.one_in(200) ? "" : random_path(random, 5);
      ASSERT_EQ(marks.add(path), !oracle.covers(path)) << path;
      oracle.marked.push_back(path);
      for (int probe = 0; probe < 20; ++probe) {
        const std::string asked = random.one_in(20) ? "" : random_path(random, 6);
        ASSERT_EQ(marks.covers(asked), oracle.covers(asked)) << asked;
        // On the way to a mark it must say so; inside a mark nobody asks.
        if (!oracle.covers(asked)) {
          ASSERT_EQ(marks.has_below(asked), oracle.has_below(asked)) << asked;
        }
      }
    }
  }
}

TEST(TreeMarksTest, Merge_CoversWhatEitherCovers) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 100; ++round) {
    TreeMarks one;
    TreeMarks two;
    Oracle oracle;
    for (int i = 0; i < 20; ++i) {
      oracle.marked.push_back(random_path(random, 4));
      (random.one_in(2) ? one : two).add(oracle.marked.back());
    }
    TreeMarks other_way = two;
    other_way.merge(one);
    one.merge(two);
    ASSERT_EQ(one, other_way);
    for (const std::string& path : oracle.marked) ASSERT_TRUE(one.covers(path)) << path;
    for (int probe = 0; probe < 50; ++probe) {
      const std::string asked = random_path(random, 5);
      ASSERT_EQ(one.covers(asked), oracle.covers(asked)) << asked;
    }
  }
}

TEST(TreeMarksTest, CountBeyondBound_IsJoinedWithoutDroppingMarks) {
  SPOOR_RANDOM(random);
  TreeMarks marks;
  std::vector<std::string> made;
  for (int i = 0; i < 25'000; ++i) {
    std::string path = random.letters(1);
    for (std::uint64_t depth = random.below(6); depth > 0; --depth) path = join_path(path, random.letters(3));
    marks.add(path);
    made.push_back(std::move(path));
    ASSERT_LE(marks.size(), TreeMarks::count_max);
  }
  for (const std::string& path : made) ASSERT_TRUE(marks.covers(path)) << path;
}

TEST(TreeMarksTest, CountAtBound_KeepsMarksExact) {
  TreeMarks marks;
  for (std::size_t i = 0; i < TreeMarks::count_max; ++i) marks.add(fmt::format("bucket/{:05}", i));
  EXPECT_EQ(marks.size(), TreeMarks::count_max);
  EXPECT_FALSE(marks.covers("bucket"));
  EXPECT_FALSE(marks.covers("bucket/x"));
}

TEST(TreeMarksTest, Join_StartsWithDeepestMarks) {
  TreeMarks marks;
  marks.add("shallow");
  for (std::size_t i = 0; i < TreeMarks::count_max; ++i) marks.add(fmt::format("bucket/a/{:05}", i));
  EXPECT_TRUE(marks.covers("bucket/a"));
  EXPECT_TRUE(marks.covers("shallow"));
  EXPECT_FALSE(marks.covers("bucket/b"));
  EXPECT_FALSE(marks.covers("other"));
}

// All marks are cut at one depth: the greatest at which three quarters of the bound remain.
TEST(TreeMarksTest, Join_CutsNoMoreDepthThanNeeded) {
  TreeMarks marks;
  marks.add("a-b/shallow");
  for (std::size_t i = 0; i < TreeMarks::count_max; ++i) marks.add(fmt::format("a/{}/b/{:05}/c/d", i % 5, i));
  EXPECT_EQ(marks.size(), 6U);
  EXPECT_TRUE(marks.covers("a/4/b"));
  EXPECT_FALSE(marks.covers("a/4"));
  EXPECT_FALSE(marks.covers("a/5"));
  EXPECT_TRUE(marks.covers("a-b/shallow"));
  EXPECT_FALSE(marks.covers("a-b"));

  TreeMarks more;
  for (std::size_t i = 0; i <= TreeMarks::count_max; ++i) more.add(fmt::format("a/{}/b/{:05}", i % 7'500, i));
  EXPECT_EQ(more.size(), 7'500U);
}

// Each level cost a pass over all marks; these took minutes, under the tracker's lock.
TEST(TreeMarksTest, VeryDeepMarks_AreJoinedToRoot) {
  std::string deep;
  for (int level = 0; level < 250; ++level) deep += "/x";
  TreeMarks marks;
  for (std::size_t i = 0; i <= TreeMarks::count_max; ++i) marks.add(fmt::format("t{:05}", i) + deep);
  EXPECT_TRUE(marks.covers(""));
}

// A path of many components of one byte, different from all others in its first.
std::string long_path(std::size_t number, std::size_t bytes) {
  std::string path = fmt::format("t{:05}", number);
  while (path.size() < bytes) path += "/x";
  return path;
}

TEST(TreeMarksTest, BytesBeyondBound_AreJoinedWithoutDroppingMarks) {
  SPOOR_RANDOM(random);
  TreeMarks marks;
  std::vector<std::string> made;
  for (int i = 0; i < 4'000; ++i) {
    std::string path = random.letters(1);
    while (random.below(30) != 0 && path.size() < path_bytes_max - 200)
      path = join_path(path, random.letters(100));
    marks.add(path);
    made.push_back(std::move(path));
    ASSERT_LE(marks.bytes(), TreeMarks::bytes_max);
  }
  for (const std::string& path : made) ASSERT_TRUE(marks.covers(path)) << path;
}

TEST(TreeMarksTest, BytesBeyondBound_CutNoMoreDepthThanNeeded) {
  TreeMarks marks;
  marks.add("shallow/exact");
  for (std::size_t i = 0; i < TreeMarks::bytes_max / 4'000 + 2; ++i) marks.add(long_path(i, 4'000));
  EXPECT_TRUE(marks.covers("shallow/exact"));
  EXPECT_FALSE(marks.covers("shallow"));
  EXPECT_FALSE(marks.covers("t00000/x/x/x"));
  EXPECT_GT(marks.bytes(), TreeMarks::bytes_max / 4 * 3 - 2 * TreeMarks::bytes_max / 4'000)
      << "a step is 2 bytes a mark";
}

// A join costs a pass over all marks: no writer may make them come more often than with each quarter of a
// bound.
TEST(TreeMarksTest, BytesBeyondBound_JoinAtMostOncePerQuarter) {
  TreeMarks marks;
  std::size_t added = 0;
  std::size_t joins = 0;
  for (std::size_t i = 0; i < 4'000; ++i) {
    const std::string path = long_path(i, path_bytes_max - 1);
    marks.insert(path);
    added += path.size();
    if (!marks.bound().empty()) ++joins;
  }
  EXPECT_GT(joins, 0U);
  EXPECT_LE(joins, added / (TreeMarks::bytes_max / 4));
}

TEST(TreeMarksTest, MergeOfThousandSets_StaysWithinBothBounds) {
  TreeMarks merged;
  for (std::size_t peer = 0; peer < (support::is_sanitized ? 200 : 1'000); ++peer) {
    TreeMarks marks;
    for (std::size_t i = 0; i < 50; ++i) marks.add(long_path(peer * 50 + i, 4'000));
    merged.merge(marks);
    ASSERT_LE(merged.bytes(), TreeMarks::bytes_max);
    ASSERT_LE(merged.size(), TreeMarks::count_max);
    ASSERT_TRUE(merged.covers(long_path(peer * 50, 4'000)));
  }
  EXPECT_TRUE(merged.covers(long_path(0, 4'000)));
}

TEST(TreeMarksTest, Bytes_EqualSumOfKeptPaths) {
  SPOOR_RANDOM(random);
  TreeMarks marks;
  for (int i = 0; i < 300; ++i) {
    TreeMarks other;
    for (int n = 0; n < 3; ++n) other.add(random_path(random, 5));
    if (random.one_in(2)) {
      marks.merge(other);
    } else {
      marks.add(random_path(random, 6));
    }
    std::size_t bytes = 0;
    for (const std::string& path : marks) bytes += path.size();
    ASSERT_EQ(marks.bytes(), bytes);
  }
}

TEST(TreeMarksTest, TopLevelMarksBeyondBound_AreJoinedToRoot) {
  TreeMarks marks;
  for (std::size_t i = 0; i <= TreeMarks::count_max; ++i) marks.add(fmt::format("bucket-{:05}", i));
  EXPECT_TRUE(marks.covers(""));
}

}  // namespace
}  // namespace spoor::tracker
