#include "tracker/filter/mark_cursor.h"

#include <gtest/gtest.h>

#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

MarkCursor at(const MarkSet& marks, std::string_view path) {
  MarkCursor cursor(marks);
  for (ComponentCursor component(path); component.next();) cursor.descend(component.component());
  return cursor;
}

// What the set itself answers, asked for the whole path and those above it.
bool is_led_to(const MarkSet& marks, const std::string& path) {
  MarkSet::Groups groups = marks.groups();
  for (ComponentCursor component(path); component.next();) {
    groups = marks.groups_that_may_contain(hash_path(component.prefix()), groups);
  }
  return groups != 0;
}

void expect_what_the_set_says(const MarkCursor& cursor, const MarkSet& marks, const std::string& path) {
  ASSERT_EQ(cursor.covered(), marks.tree_marks().covers(path)) << path;
  ASSERT_EQ(cursor.leads_to_tree_mark(), marks.tree_marks().has_below(path)) << path;
  ASSERT_EQ(cursor.in_filter(), is_led_to(marks, path)) << path;
}

TEST(MarkCursorTest, EmptySet_MarksNothing) {
  MarkSet marks;
  for (const std::string_view path : {"", "a", "a/b"}) {
    const MarkCursor cursor = at(marks, path);
    EXPECT_FALSE(cursor.in_filter() || cursor.covered() || cursor.leads_to_tree_mark()) << path;
  }
  marks.add_filter(BloomFilter(small_shape()));
  EXPECT_FALSE(at(marks, "").in_filter()) << "a filter without a bit marks nothing";
}

TEST(MarkCursorTest, AnyMark_MarksTheRootAndAllFiltersAreQueried) {
  EXPECT_TRUE(at(mark_set_of({"a/b"}), "").in_filter());
  EXPECT_TRUE(at(trees_of({"a/b"}), "").in_filter());
  MarkSet marks = mark_set_of({"a"});
  marks.merge(mark_set_of({"b"}, {128, 3}));
  for (const std::string_view path : {"a", "b"}) EXPECT_TRUE(at(marks, path).in_filter()) << path;
  EXPECT_FALSE(at(marks, "c").in_filter());
}

TEST(MarkCursorTest, PathBelowOneOfAnotherGroup_IsNotMarked) {
  MarkSet marks;
  ASSERT_TRUE(marks.try_add_apart(mark_set_of({"a", "a/b"})));
  ASSERT_TRUE(marks.try_add_apart(mark_set_of({"c", "c/b"})));
  for (const std::string_view path : {"", "a", "a/b", "c", "c/b"})
    EXPECT_TRUE(at(marks, path).in_filter()) << path;
  // Each is in the filter of a group that was left above it.
  ASSERT_TRUE(marks.try_add_apart(mark_set_of({"d", "a/d", "c/e"})));
  for (const std::string_view path : {"a/d", "c/e"}) EXPECT_FALSE(at(marks, path).in_filter()) << path;
}

// "a!" and "a-" sort between "a" and "a/b", "a0" behind them.
TEST(MarkCursorTest, TreeMark_ParentsLeadToItAndBelowIsCovered) {
  struct Case {
    MarkSet marks;
    std::vector<std::string_view> lead;
    std::vector<std::string_view> covered;
    std::vector<std::string_view> neither;
  };
  const Case cases[] = {
      {trees_of({"a/b"}), {"", "a"}, {"a/b", "a/b/c", "a/b/c/d"}, {"b", "a/a", "a/bb", "a/c", "ab", "b/a/b"}},
      {trees_of({"x/a!", "x/a-/c", "x/a/b", "x/a0", "x/a\xff"}),
       {"x", "x/a", "x/a-"},
       {"x/a/b", "x/a!", "x/a-/c/d", "x/a0", "x/a\xff"},
       {"x/a/c"}},
      {trees_of({""}), {}, {"", "a", "a/b"}, {}},
  };
  for (const auto& [marks, lead, covered, neither] : cases) {
    for (const auto path : lead)
      EXPECT_TRUE(at(marks, path).leads_to_tree_mark() && !at(marks, path).covered()) << path;
    for (const auto path : covered)
      EXPECT_TRUE(at(marks, path).covered() && !at(marks, path).leads_to_tree_mark()) << path;
    for (const auto path : neither)
      EXPECT_FALSE(at(marks, path).covered() || at(marks, path).leads_to_tree_mark()) << path;
  }
}

TEST(MarkCursorTest, CopiedCursor_DescendsIndependently) {
  MarkSet marks = trees_of({"a/b", "c"});
  marks.merge(mark_set_of({"a"}));
  const MarkCursor root(marks);
  MarkCursor child = root;
  child.descend("a");
  const MarkCursor parent = child;
  child.descend("b");
  EXPECT_TRUE(child.covered());
  EXPECT_TRUE(parent.in_filter() && parent.leads_to_tree_mark() && !parent.covered());
  child = root;
  child.descend("c");
  EXPECT_TRUE(child.covered());
}

TEST(MarkCursorTest, DriveMarkPath_IsAPathOrNone) {
  EXPECT_EQ(drive_mark_path("9f1c", "a/b"), ".spoor:/9f1c/a/b");
  for (const char* drive : {"", "a/b", "."}) EXPECT_EQ(drive_mark_path(drive, "a"), "") << drive;
  EXPECT_EQ(drive_mark_path("9f1c", std::string(200, 'a')), ".spoor:/9f1c/" + std::string(200, 'a'));
  std::string longest = "a";
  while (longest.size() + 2 <= path_bytes_max) longest += "/a";
  EXPECT_EQ(drive_mark_path("9f1c", longest), "") << "the journal takes no longer path";
}

TEST(MarkCursorTest, RandomPaths_MatchTheMarkSet) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 300; ++round) {
    MarkSet marks;
    for (std::uint64_t count = random.below(60); count > 0; --count) marks.add_tree(random_path(random, 6));
    for (std::uint64_t count = random.below(30); count > 0; --count) {
      marks.add(hash_path(random_path(random, 6)), random.one_in(3) ? BloomShape{67, 2} : small_shape());
    }
    for (int walk = 0; walk < 40; ++walk) {
      const std::string path = random_path(random, 8);
      MarkCursor cursor(marks);
      ASSERT_EQ(cursor.in_filter(), !marks.empty());
      for (ComponentCursor component(path); component.next();) {
        cursor.descend(component.component());
        ASSERT_NO_FATAL_FAILURE(expect_what_the_set_says(cursor, marks, std::string(component.prefix())));
      }
    }
  }
}

// Any byte but the two that no name has.
TEST(MarkCursorTest, NamesOfArbitraryBytes_MatchTheMarkSet) {
  SPOOR_RANDOM(random);
  const auto name = [&] {
    std::string bytes = random.bytes(random.between(1, 2));
    std::replace(bytes.begin(), bytes.end(), '\0', '!');
    std::replace(bytes.begin(), bytes.end(), '/', '0');
    return bytes == "." || bytes == ".." ? std::string("-") : bytes;
  };
  MarkSet marks;
  std::vector<std::string> paths;
  for (int count = 0; count < 3'000; ++count) {
    const std::string top = count % 2 == 0 || paths.empty() ? name() : random.pick(paths);
    paths.push_back(join_path(top, name()));
    if (random.one_in(2)) marks.add_tree(join_path(paths.back(), name()));
  }
  for (const std::string& path : paths) {
    ASSERT_NO_FATAL_FAILURE(expect_what_the_set_says(at(marks, path), marks, path));
  }
}

}  // namespace
}  // namespace spoor::tracker
