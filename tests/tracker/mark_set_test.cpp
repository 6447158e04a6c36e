#include "tracker/filter/mark_set.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

constexpr BloomShape shapes[] = {{4'001, 3}, {4'002, 3}, {4'001, 4}};
constexpr MarkSet::Groups all_groups = ~MarkSet::Groups{0};

// A set with something in each of its parts, some packed, and what was put into it.
MarkSet random_set(support::Random& random, std::vector<std::string>& paths,
                   std::vector<std::string>& trees) {
  MarkSet marks;
  for (std::uint64_t n = random.below(40); n > 0; --n) {
    paths.push_back(random_path(random, 6));
    marks.add(hash_path(paths.back()), shapes[random.below(3)]);
  }
  for (std::uint64_t n = random.below(4); n > 0; --n) {
    trees.push_back(random_path(random, 4));
    marks.add_tree(trees.back());
  }
  if (random.one_in(4)) return marks;
  // All of them packed, or some.
  MarkSet mixed;
  for (const BloomFilter& filter : marks.filters())
    mixed.add_filter(random.one_in(3) ? filter : filter.packed());
  for (const std::string& path : marks.tree_marks()) mixed.add_tree(path);
  return mixed;
}

std::map<BloomShape, std::vector<std::uint64_t>> all_bits_of(const MarkSet& marks) {
  std::map<BloomShape, std::vector<std::uint64_t>> bits;
  for (const BloomFilter& filter : marks.filters()) bits[filter.shape()] = bits_of(filter);
  return bits;
}

bool same_answers(const MarkSet& one, const MarkSet& two, support::Random& random) {
  if (all_bits_of(one) != all_bits_of(two) || one.filters().size() != two.filters().size()) return false;
  for (int probe = 0; probe < 200; ++probe) {
    const std::string path = random.one_in(50) ? "" : random_path(random, 6);
    if (contains(one, path) != contains(two, path)) return false;
    if (one.filters_may_contain(hash_path(path)) != two.filters_may_contain(hash_path(path))) return false;
    if (one.tree_marks().covers(path) != two.tree_marks().covers(path)) return false;
  }
  return true;
}

MarkSet merged(const MarkSet& one, const MarkSet& two) {
  MarkSet both = one;
  both.merge(two);
  return both;
}

// One filter of this shape, of which a single bit is set, packed.
MarkSet of_one_bit(BloomShape shape) {
  MarkSet marks;
  marks.add_filter(BloomFilter(shape, *PackedBits::pack(std::vector<std::uint64_t>{1}, 100)));
  return marks;
}

// A set that can't be encoded would be lost on its way to the scan.
TEST(MarkSetTest, FiltersOfManyShapes_FitIntoAnEncodedGroupOrAreRefused) {
  MarkSet many;
  for (std::uint64_t bits = 64; bits < 64 + MarkSet::group_filters_max; ++bits)
    many.merge(mark_set_of({"a"}, {bits, 1}));
  MarkSet marks;
  ASSERT_TRUE(marks.try_add_apart(many));
  EXPECT_FALSE(marks.try_add_apart(mark_set_of({"b"}, BloomShape{5000, 3})));
  EXPECT_TRUE(marks.try_add_apart(many));
  base::ByteWriter out;
  encode_mark_groups(out, marks);
  base::ByteReader in(out.bytes());
  EXPECT_TRUE(decode_mark_groups(in));
}

TEST(MarkSetTest, Add_ReturnsWhetherPathOrTreeWasNew) {
  MarkSet marks;
  EXPECT_TRUE(marks.empty());
  for (const std::string_view path : {"", "bucket"}) EXPECT_FALSE(contains(marks, path));
  EXPECT_TRUE(marks.add(hash_path("bucket"), small_shape()));
  EXPECT_FALSE(marks.add(hash_path("bucket"), small_shape()));
  EXPECT_FALSE(marks.empty());
  MarkSet trees;
  EXPECT_TRUE(trees.add_tree("bucket"));
  EXPECT_FALSE(trees.add_tree("bucket/a"));
  EXPECT_FALSE(trees.empty());
}

// ancestor 19: the way down to a marked tree is marked by the tree itself.
TEST(MarkSetTest, TreeMark_ContainsItsParentsAndAllBelow) {
  const MarkSet marks = trees_of({"bucket/a/b"});
  for (const std::string_view path : {"", "bucket", "bucket/a", "bucket/a/b", "bucket/a/b/c/d"}) {
    EXPECT_TRUE(contains(marks, path)) << path;
  }
  for (const std::string_view path : {"other", "bucket/b", "bucket/a/c"})
    EXPECT_FALSE(contains(marks, path)) << path;
}

TEST(MarkSetTest, Merge_IsCommutativeAssociativeAndIdempotentAndKeepsAllMarks) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::string> paths;
    std::vector<std::string> trees;
    const MarkSet a = random_set(random, paths, trees);
    const MarkSet b = random_set(random, paths, trees);
    const MarkSet c = random_set(random, paths, trees);
    const MarkSet all = merged(merged(a, b), c);
    ASSERT_TRUE(same_answers(merged(a, b), merged(b, a), random));
    ASSERT_TRUE(same_answers(all, merged(a, merged(b, c)), random));
    ASSERT_TRUE(same_answers(merged(a, a), a, random));
    ASSERT_TRUE(same_answers(merged(merged(a, b), b), merged(a, b), random));
    ASSERT_TRUE(same_answers(merged(a, MarkSet()), a, random));
    ASSERT_TRUE(same_answers(merged(MarkSet(), a), a, random));
    ASSERT_TRUE(same_answers(a.packed(), a, random));
    ASSERT_TRUE(same_answers(merged(a.packed(), b.packed()), merged(a, b), random));
    for (const std::string& path : paths) ASSERT_TRUE(contains(all, path)) << path;
    for (const std::string& path : trees) {
      ASSERT_TRUE(contains(all, path + "/somewhere/below")) << path;
      for (ComponentCursor at(path); at.next();) ASSERT_TRUE(contains(all, at.prefix())) << at.prefix();
    }
  }
}

TEST(MarkSetTest, Packed_PacksOnlySparseFilters) {
  SPOOR_RANDOM(random);
  MarkSet marks = mark_set_of({"sparse"}, shapes[0]);
  for (int i = 0; i < 1'000; ++i) marks.add(hash_path(random.letters(20)), shapes[1]);
  marks.add_tree("tree");
  const MarkSet packed = marks.packed();
  ASSERT_EQ(packed.filters().size(), 2U);
  EXPECT_TRUE(packed.filter_of(shapes[0])->is_packed());
  EXPECT_FALSE(packed.filter_of(shapes[1])->is_packed());
  EXPECT_EQ(packed.filter_of(shapes[2]), nullptr);
  EXPECT_TRUE(packed.tree_marks().covers("tree"));
  EXPECT_LT(packed.memory_bytes(), marks.memory_bytes());
}

TEST(MarkSetTest, Merge_UnpacksOnlyFiltersOfSameShapeAndLeavesItsSource) {
  const MarkSet source = mark_set_of({"a"}, shapes[0]).packed();
  MarkSet marks;
  marks.merge(source);
  EXPECT_TRUE(marks.filters().front().is_packed());
  marks.add_filter(mark_set_of({"b"}, shapes[1]).packed().filters().front());
  EXPECT_TRUE(marks.filter_of(shapes[0])->is_packed());
  EXPECT_TRUE(marks.filter_of(shapes[1])->is_packed());
  marks.merge(mark_set_of({"c"}, shapes[0]).packed());
  EXPECT_FALSE(marks.filter_of(shapes[0])->is_packed());
  EXPECT_TRUE(marks.filter_of(shapes[1])->is_packed());
  EXPECT_EQ(marks.filters().size(), 2U) << "one of each shape";
  for (const std::string_view path : {"a", "b", "c"}) EXPECT_TRUE(contains(marks, path)) << path;
  EXPECT_FALSE(contains(marks, "d"));
  EXPECT_FALSE(contains(source, "c"));
}

TEST(MarkSetTest, MemoryBytes_CountFiltersAndTreeMarks) {
  MarkSet marks;
  EXPECT_EQ(marks.memory_bytes(), 0U);
  marks.add(hash_path("a"), {64'000, 3});
  EXPECT_EQ(marks.memory_bytes(), 8'000U);
  marks.add_tree("0123456789");
  EXPECT_EQ(marks.memory_bytes(), 8'110U);
}

TEST(MarkSetTest, TryAddApartBeyondBound_ChangesNothing) {
  constexpr BloomShape one{64'000, 3};
  constexpr BloomShape two{128'000, 3};
  MarkSet marks = mark_set_of({"a"}, one).packed();
  marks.add_tree("0123456789");
  MarkSet other = mark_set_of({"b"}, one).packed();
  other.merge(mark_set_of({"c"}, two).packed());
  constexpr std::uint64_t needed = 8'000 + 16'000 + 110;
  const auto before = all_bits_of(marks);
  EXPECT_FALSE(marks.try_add_apart(other, needed - 1));
  EXPECT_EQ(all_bits_of(marks), before);
  EXPECT_TRUE(marks.filters().front().is_packed());

  const auto expected = all_bits_of(merged(marks, other));
  EXPECT_TRUE(marks.try_add_apart(other, needed));
  EXPECT_EQ(all_bits_of(marks), expected);
  EXPECT_LE(marks.memory_bytes(), needed);
  EXPECT_TRUE(marks.try_add_apart(mark_set_of({"d"}, two).packed(), needed));
  EXPECT_TRUE(marks.try_add_apart(MarkSet(), needed));
  EXPECT_FALSE(marks.try_add_apart(trees_of({"other"}), needed));
  EXPECT_FALSE(marks.tree_marks().covers("other"));
}

TEST(MarkSetTest, AddedApart_DoNotFillEachOther) {
  constexpr BloomShape shape{640, 3};
  MarkSet apart;
  MarkSet together;
  for (int number = 0; number < 5; ++number) {
    const std::string mine = "of-" + std::to_string(number);
    MarkSet marks = mark_set_of({"all", mine}, shape);
    marks.add_tree(mine);
    ASSERT_TRUE(apart.try_add_apart(marks));
    EXPECT_TRUE(apart.tree_marks().covers(mine));
    together.merge(marks);
    EXPECT_EQ(apart.groups_that_may_contain(hash_path(mine), all_groups) >> number & 1U, 1U);
  }
  EXPECT_EQ(apart.group_count(), 5U);
  EXPECT_EQ(apart.shape_count(), 1U);
  EXPECT_EQ(apart.groups_that_may_contain(hash_path("all"), all_groups), 0b11111U);
  EXPECT_EQ(apart.groups_that_may_contain(hash_path("all"), 0b00101U), 0b00101U);
  EXPECT_EQ(all_bits_of(merged(MarkSet(), apart)), all_bits_of(together));
}

TEST(MarkSetTest, MoreSetsThanGroups_ShareGroupsByTurns) {
  MarkSet marks;
  for (std::size_t number = 0; number < 3 * MarkSet::groups_max; ++number) {
    MarkSet added = mark_set_of({std::to_string(number)}, {6400, 3});
    added.add_tree("tree-" + std::to_string(number));
    ASSERT_TRUE(marks.try_add_apart(added));
    EXPECT_TRUE(marks.tree_marks().covers("tree-" + std::to_string(number))) << number;
  }
  EXPECT_EQ(marks.group_count(), MarkSet::groups_max);
  EXPECT_EQ(marks.filters().size(), MarkSet::groups_max);
  for (std::size_t number = 0; number < 3 * MarkSet::groups_max; ++number) {
    const auto in = marks.groups_that_may_contain(hash_path(std::to_string(number)), all_groups);
    EXPECT_EQ(in >> (number % MarkSet::groups_max) & 1U, 1U) << number;
  }
}

TEST(MarkSetTest, SetsOfManyBytes_ShareGroupsOrAreRefused) {
  const MarkSet large = of_one_bit({MarkSet::groups_bytes_max * 8 / 2, 3});
  MarkSet marks;
  ASSERT_TRUE(marks.try_add_apart(large));
  ASSERT_TRUE(marks.try_add_apart(large));
  EXPECT_EQ(marks.group_count(), 2U);
  ASSERT_TRUE(marks.try_add_apart(mark_set_of({"a"})));
  EXPECT_EQ(marks.group_count(), 2U);

  const MarkSet huge = of_one_bit({BloomShape::bits_max, 4});
  MarkSet none;
  EXPECT_FALSE(none.try_add_apart(huge));
  EXPECT_TRUE(none.empty());
  none.merge(huge);  // alone it stays packed
  EXPECT_LT(none.memory_bytes(), 1'000U);
  EXPECT_FALSE(none.try_add_apart(huge));
  EXPECT_TRUE(none.filters().front().is_packed());
}

TEST(MarkSetTest, Unpack_LeavesLargeFiltersPacked) {
  MarkSet marks = mark_set_of({"small"}, {100'000, 3});
  marks.merge(mark_set_of({"large"}, {1'000'000, 3}));
  MarkSet packed = marks.packed();
  packed.unpack(100'000);
  EXPECT_FALSE(packed.filters()[0].is_packed());
  EXPECT_TRUE(packed.filters()[1].is_packed());
  for (const char* path : {"small", "large"}) EXPECT_TRUE(contains(packed, path)) << path;
  EXPECT_FALSE(contains(packed, "neither"));
}

TEST(MarkSetFiguresTest, SeveralFilters_AreSummedUp) {
  SPOOR_RANDOM(random);
  MarkSet marks;
  for (int i = 0; i < 500; ++i) marks.add(hash_path(random.letters(20)), {10'000, 4});
  for (int i = 0; i < 300; ++i) marks.add(hash_path(random.letters(20)), {20'000, 4});
  const auto figures = MarkSetFigures::of(marks);
  const auto one = FilterFigures::of(marks.filters()[0]);
  const auto two = FilterFigures::of(marks.filters()[1]);
  EXPECT_EQ(figures.bits, 30'000U);
  EXPECT_DOUBLE_EQ(figures.items, one.items + two.items);
  EXPECT_NEAR(figures.items, 800, 60);
  EXPECT_DOUBLE_EQ(figures.density, (one.density + 2 * two.density) / 3);
  EXPECT_DOUBLE_EQ(figures.fp_rate, 1 - (1 - one.fp_rate) * (1 - two.fp_rate));
  const auto none = MarkSetFigures::of(MarkSet());
  EXPECT_EQ(none.bits, 0U);
  EXPECT_EQ(none.density, 0);
  EXPECT_EQ(none.fp_rate, 0);
}

}  // namespace
}  // namespace spoor::tracker
