#include "tracker/filter/tree_marks.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/support/sanitizer.h"
#include "tests/tracker/node.h"

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

TEST(TreeMarksTest, TreeMark_CoversAllBelowAndIsBelowItsParents) {
  TreeMarks marks;
  for (const std::string_view path : {"", "bucket"})
    EXPECT_FALSE(marks.covers(path) || marks.has_below(path));
  EXPECT_TRUE(marks.add("bucket/a/b"));
  for (const std::string_view path : {"bucket/a/b", "bucket/a/b/c/d"}) {
    EXPECT_TRUE(marks.covers(path)) << path;
    EXPECT_FALSE(marks.has_below(path)) << path;
  }
  for (const std::string_view path : {"", "bucket", "bucket/a"}) {
    EXPECT_FALSE(marks.covers(path)) << path;
    EXPECT_TRUE(marks.has_below(path)) << path;
  }
  for (const std::string_view path : {"bucket/b", "buck", "bucket/a/", "bucket/a0", "bucket/a/bb",
                                      "bucket/a/b-", "bucket/a/b.x", "bucket/a/b0", "a"}) {
    EXPECT_FALSE(marks.covers(path)) << path;
    EXPECT_FALSE(marks.has_below(path)) << path;
  }
}

TEST(TreeMarksTest, MarkBelowAnother_IsNotAddedAndOneAboveReplacesThem) {
  TreeMarks marks;
  for (const char* path : {"bucket/a/b", "bucket/a/c", "bucket/a0", "bucket/a-"})
    EXPECT_TRUE(marks.add(path));
  EXPECT_FALSE(marks.add("bucket/a/b"));
  EXPECT_FALSE(marks.add("bucket/a/b/c"));
  EXPECT_TRUE(marks.add("bucket/a"));
  EXPECT_EQ(marks.size(), 3U) << "those beside it stay";
  EXPECT_TRUE(marks.add(""));
  EXPECT_EQ(marks.size(), 1U);
  for (const char* path : {"", "anything/at/all"}) EXPECT_TRUE(marks.covers(path));
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

TEST(TreeMarksTest, CountBeyondBound_JoinsTheDeepestMarksOnly) {
  TreeMarks marks;
  for (std::size_t i = 0; i < TreeMarks::count_max; ++i) marks.add(fmt::format("bucket/a/{:05}", i));
  EXPECT_EQ(marks.size(), TreeMarks::count_max);
  for (const char* path : {"bucket/a", "bucket/a/x"}) EXPECT_FALSE(marks.covers(path)) << "at the bound";
  marks.add("shallow");
  for (const char* path : {"bucket/a", "shallow"}) EXPECT_TRUE(marks.covers(path));
  for (const char* path : {"bucket/b", "other"}) EXPECT_FALSE(marks.covers(path));
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

// Of the deep ones each level cost a pass over all marks, which took minutes under the tracker's lock.
TEST(TreeMarksTest, VeryDeepOrTopLevelMarks_AreJoinedToRoot) {
  std::string deep;
  for (int level = 0; level < 250; ++level) deep += "/x";
  for (const std::string& below : {std::string(), deep}) {
    TreeMarks marks;
    for (std::size_t i = 0; i <= TreeMarks::count_max; ++i) marks.add(fmt::format("t{:05}", i) + below);
    EXPECT_TRUE(marks.covers(""));
  }
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

// --- in a tracker ---

// Siblings of 1,000 bytes and more in a directory of their own: beyond the bound they join to it.
std::string sibling(std::size_t cycle, const std::string& name) {
  std::string path = fmt::format("cycle-{}", cycle);
  while (path.size() < 1'000) path += "/" + std::string(100, 'x');
  return path + "/" + name;
}

class TrackerTreeMarksTest : public ::testing::Test {
 protected:
  TrackerTreeMarksTest() { make_directories(files_); }

  fakes::MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

TEST_F(TrackerTreeMarksTest, EveryCycleAtByteBound_KeepsStateAndAnswersSmall) {
  Tracker tracker(small_options(), clock_, Tracker::born(instance_of(1), clock_));
  const std::size_t cycles = small_options().history_max + 1;
  for (std::size_t cycle = 1; cycle <= cycles; ++cycle) {
    tracker.advance({cycle});
    for (std::size_t i = 0; i < 2'000; ++i) mark(tracker, {tree(sibling(cycle, std::to_string(i)))});
  }
  const TrackerState state = tracker.state();
  ASSERT_EQ(state.history.size(), cycles - 1);
  EXPECT_LE(bytes_of(state).size(), cycles * (TreeMarks::bytes_max + 2 * TreeMarks::count_max) + 1'000);
  const MarkSet all = tracker.cycle(read_all(tracker)).marks;
  EXPECT_LE(all.tree_marks().bytes(), TreeMarks::bytes_max);
  for (std::size_t cycle = 1; cycle <= cycles; ++cycle) {
    for (std::size_t i = 0; i < 2'000; i += 100)
      ASSERT_TRUE(all.tree_marks().covers(sibling(cycle, std::to_string(i))));
  }
}

TEST_F(TrackerTreeMarksTest, TreeMarks_DoNotReduceFilterMemory) {
  const auto levels_after = [this](std::size_t trees) {
    auto options = small_options();
    options.memory_bytes_max = 1'000'000;
    Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
    for (std::size_t cycle = 1; cycle <= 10; ++cycle) {
      tracker.advance({cycle});
      for (std::size_t i = 0; i < trees; ++i) mark(tracker, {tree(sibling(cycle, std::to_string(i)))});
    }
    tracker.advance({11});
    for (int i = 0; i < 5'000; ++i) mark(tracker, {dir(std::to_string(i))});
    const TrackerStatus status = tracker.status();
    EXPECT_FALSE(status.cycles.front().saturated) << trees;
    return std::pair(status.cycles.front().levels, status.memory_bytes);
  };
  EXPECT_EQ(levels_after(500), levels_after(0));
}

// Joined again and again: short marks deep down beside long ones, of which each join records no more than it
// changes.
TEST_F(TrackerTreeMarksTest, RepeatedJoins_RecordLittleMoreThanTheMarks) {
  Tracker tracker(small_options(), clock_, Tracker::born(instance_of(1), clock_));
  std::size_t bytes = 0;
  const auto add = [&](const std::string& path) {
    bytes += path.size();
    mark(tracker, {tree(path)});
  };
  for (std::size_t i = 0; i < 7'000; ++i) add(fmt::format("{}/{}", std::string(90, 'x'), i));
  for (std::size_t i = 0; i < 24'000; ++i) add(fmt::format("s/{}/{}", i / 3'000, i));
  EXPECT_LE(tracker.position(), 4 * bytes);
}

TEST_F(TrackerTreeMarksTest, MarkCoveredOnlyByJoin_SurvivesCrash) {
  std::size_t joined = 0;
  {
    Node node(files_, clock_, node_options(Durability::disk));
    for (std::size_t i = 0; i < 1'500; ++i) mark(node.tracker(), {tree(sibling(i % 3, std::to_string(i)))});
    // With these a replay of the marks alone would be within the bound, and join nothing.
    mark(node.tracker(), {tree("cycle-1"), tree("cycle-2")});
    joined = node.tracker().status().cycles.front().tree_marks;
    EXPECT_LT(joined, 1'500U);
    EXPECT_EQ(mark(node.tracker(), {tree(sibling(0, "other"))}).added, 0U);
    ASSERT_TRUE(node.mark_durably(tree(sibling(0, "other"))));
  }
  files_.crash();
  Node node(files_, clock_, node_options(Durability::disk));
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.is_dirty(sibling(0, "other/below")));
  EXPECT_EQ(node.tracker().status().cycles.front().tree_marks, joined);
}

}  // namespace
}  // namespace spoor::tracker
