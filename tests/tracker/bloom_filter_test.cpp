#include "tracker/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr BloomShape level_0{958506, 4};

std::set<std::uint64_t> set_bits(const BloomFilter& filter) {
  std::set<std::uint64_t> bits;
  for (std::uint64_t bit = 0; bit < filter.words().size() * 64; ++bit) {
    if ((filter.words()[bit / 64] >> (bit % 64) & 1U) != 0) bits.insert(bit);
  }
  return bits;
}

BloomFilter dense(const BloomFilter& filter) {
  BloomFilter words(filter.shape());
  words.merge(filter);
  return words;
}

PathHash random_hash(support::Random& random) {
  return {{random.next(), random.next(), random.next(), random.next()}};
}

TEST(BloomShapeTest, DefaultItemsAndRate_GiveLevelZeroShape) {
  EXPECT_EQ(BloomShape::for_items(200'000, 0.1), level_0);
  EXPECT_EQ(level_0.word_count(), 14977U);
  EXPECT_EQ(level_0.byte_count(), 119816U);
}

TEST(BloomShapeTest, MoreItemsOrLowerRate_TakeMoreBits) {
  const BloomShape one = BloomShape::for_items(1'000, 0.1);
  EXPECT_GT(BloomShape::for_items(2'000, 0.1).bits, one.bits);
  EXPECT_GT(BloomShape::for_items(1'000, 0.01).bits, one.bits);
  EXPECT_GT(BloomShape::for_items(1'000, 0.01).hashes, one.hashes);
}

TEST(BloomShapeTest, ExtremeItemsAndRates_GiveValidShapes) {
  for (const double p : {1e-300, 0.5, 0.999999, 1 - 1e-16}) {
    for (const std::uint64_t n :
         {std::uint64_t{1}, std::uint64_t{1} << 40U, std::numeric_limits<std::uint64_t>::max()}) {
      const BloomShape shape = BloomShape::for_items(n, p);
      EXPECT_TRUE(BloomShape::checked(shape.bits, shape.hashes)) << n << ' ' << p;
    }
  }
}

// ancestor 4: m = 0 divides by zero, k = 0 answers yes to all.
TEST(BloomShapeTest, ShapeOutOfRange_IsRefused) {
  EXPECT_TRUE(BloomShape::checked(1, 1));
  EXPECT_TRUE(BloomShape::checked(BloomShape::bits_max, BloomShape::hashes_max));
  constexpr auto most = std::numeric_limits<std::uint64_t>::max();
  for (const BloomShape& shape :
       {BloomShape{0, 4}, BloomShape{958506, 0}, BloomShape{0, 0}, BloomShape{BloomShape::bits_max + 1, 4},
        BloomShape{958506, BloomShape::hashes_max + 1}, BloomShape{most, 4}, BloomShape{64, most}}) {
    const auto checked = BloomShape::checked(shape.bits, shape.hashes);
    ASSERT_FALSE(checked) << shape.bits << ' ' << shape.hashes;
    EXPECT_EQ(checked.error().code, Errc::invalid_shape);
  }
}

TEST(BloomFilterTest, NewFilter_ContainsNothing) {
  SPOOR_RANDOM(random);
  const BloomFilter filter(level_0);
  EXPECT_EQ(filter.bits_set(), 0U);
  EXPECT_FALSE(filter.may_contain(random_hash(random)));
}

TEST(BloomFilterTest, BitPositions_FollowFormatForEveryHashCount) {
  SPOOR_RANDOM(random);
  for (std::uint64_t hashes = 1; hashes <= BloomShape::hashes_max; ++hashes) {
    const BloomShape shape{random.between(1, 5'000), hashes};
    const PathHash hash = random_hash(random);
    BloomFilter filter(shape);
    filter.add(hash);
    std::set<std::uint64_t> expected;
    for (std::uint64_t i = 0; i < hashes; ++i) {
      expected.insert((hash.words[i % 2] + i * hash.words[2 + (((i + (i % 2)) % 4) / 2)]) % shape.bits);
    }
    ASSERT_EQ(set_bits(filter), expected) << shape.bits << ' ' << hashes;
  }
}

TEST(BloomFilterTest, AddedKeys_AreAlwaysFound) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 50; ++round) {
    BloomFilter filter({random.between(1, 20'000), random.between(1, 20)});
    std::vector<PathHash> added;
    for (std::uint64_t n = random.below(500); n > 0; --n) filter.add(added.emplace_back(random_hash(random)));
    for (const PathHash& hash : added) ASSERT_TRUE(filter.may_contain(hash));
  }
}

TEST(BloomFilterTest, Add_ReturnsWhetherAnyBitWasNew) {
  BloomFilter filter(level_0);
  EXPECT_TRUE(filter.add(hash_path("bucket")));
  EXPECT_FALSE(filter.add(hash_path("bucket")));
  // One of four positions unknown is enough, whichever it is.
  for (std::uint64_t missing = 0; missing < 4; ++missing) {
    BloomFilter whole(level_0);
    whole.add(hash_path("bucket"));
    std::vector<std::uint64_t> words(whole.words().begin(), whole.words().end());
    const std::set<std::uint64_t> bits = set_bits(whole);
    const std::uint64_t bit = *std::next(bits.begin(), static_cast<std::ptrdiff_t>(missing));
    words[bit / 64] &= ~(std::uint64_t{1} << (bit % 64));
    BloomFilter lacking(level_0, std::move(words));
    EXPECT_TRUE(lacking.add(hash_path("bucket"))) << missing;
    EXPECT_EQ(set_bits(lacking), bits);
  }
}

TEST(BloomFilterTest, Merge_IsUnionOfBits) {
  SPOOR_RANDOM(random);
  BloomFilter one({5'000, 3});
  BloomFilter two({5'000, 3});
  for (int i = 0; i < 300; ++i) {
    one.add(random_hash(random));
    two.add(random_hash(random));
  }
  std::set<std::uint64_t> both = set_bits(one);
  both.merge(set_bits(two));
  one.merge(two);
  EXPECT_EQ(set_bits(one), both);
}

TEST(BloomFilterTest, FilterFromWords_KeepsItsBits) {
  SPOOR_RANDOM(random);
  BloomFilter filter({1'000, 3});
  for (int i = 0; i < 100; ++i) filter.add(random_hash(random));
  const BloomFilter copy(filter.shape(), {filter.words().begin(), filter.words().end()});
  EXPECT_EQ(set_bits(copy), set_bits(filter));
}

TEST(BloomFilterTest, BitsBeyondShape_AreDropped) {
  // They belong to no key, and would count as density and as items.
  for (const std::uint64_t bits : {1U, 63U, 64U, 65U, 127U, 128U}) {
    const BloomShape shape{bits, 1};
    const BloomFilter filter(shape, std::vector<std::uint64_t>(shape.word_count(), ~std::uint64_t{0}));
    EXPECT_EQ(filter.bits_set(), bits);
  }
}

TEST(FilterFiguresTest, FilterFilledToCapacity_HasDesignedFigures) {
  SPOOR_RANDOM(random);
  BloomFilter filter(level_0);
  for (int i = 0; i < 200'000; ++i) filter.add(random_hash(random));
  const auto figures = FilterFigures::of(filter);
  EXPECT_NEAR(figures.items, 200'000, 2'000);
  EXPECT_NEAR(figures.density, 0.566, 0.01);
  EXPECT_NEAR(figures.fp_rate, 0.102, 0.01);

  int false_positives = 0;
  for (int i = 0; i < 50'000; ++i) false_positives += filter.may_contain(random_hash(random)) ? 1 : 0;
  EXPECT_NEAR(false_positives / 50'000.0, figures.fp_rate, 0.01);
}

TEST(FilterFiguresTest, EmptyFilter_HasZeroFigures) {
  const auto figures = FilterFigures::of(BloomFilter(level_0));
  EXPECT_EQ(figures.items, 0);
  EXPECT_EQ(figures.density, 0);
  EXPECT_EQ(figures.fp_rate, 0);
}

TEST(FilterFiguresTest, AllBitsSet_HasFiniteFigures) {
  const BloomFilter filter({100, 4}, {~std::uint64_t{0}, ~std::uint64_t{0}});
  const auto figures = FilterFigures::of(filter);
  EXPECT_DOUBLE_EQ(figures.items, 25 * std::log(200));  // as with half a bit left
  EXPECT_EQ(figures.density, 1);
  EXPECT_EQ(figures.fp_rate, 1);
}

TEST(FilterFiguresTest, EachFurtherBit_IncreasesItems) {
  for (const std::uint64_t bits : {1U, 2U, 64U, 130U}) {
    const BloomShape shape{bits, 3};
    std::vector<std::uint64_t> words(shape.word_count());
    double items = 0;
    for (std::uint64_t bit = 0; bit < bits; ++bit) {
      words[bit / 64] |= std::uint64_t{1} << (bit % 64);
      const double more = FilterFigures::of(BloomFilter(shape, words)).items;
      ASSERT_GT(more, items) << bit << " of " << bits;
      items = more;
    }
  }
}

TEST(FilterFiguresTest, PackedFilter_HasSameFigures) {
  SPOOR_RANDOM(random);
  BloomFilter filter(level_0);
  for (int i = 0; i < 5'000; ++i) filter.add(random_hash(random));
  const auto dense = FilterFigures::of(filter);
  const auto packed = FilterFigures::of(filter.packed());
  EXPECT_EQ(packed.items, dense.items);
  EXPECT_EQ(packed.density, dense.density);
  EXPECT_EQ(packed.fp_rate, dense.fp_rate);
}

// Up to an eighth of the bits: few enough that any of these sizes is packed.
TEST(PackedFilterTest, Lookups_MatchUnpackedFilter) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 60; ++round) {
    BloomFilter filter({random.between(2'000, 60'000), random.between(1, 12)});
    const std::uint64_t most = filter.shape().bits / filter.shape().hashes / 8;
    std::vector<PathHash> added;
    for (std::uint64_t n = random.below(most + 1); n > 0; --n)
      filter.add(added.emplace_back(random_hash(random)));
    const BloomFilter packed = filter.packed();
    ASSERT_TRUE(packed.is_packed());
    ASSERT_EQ(packed.shape(), filter.shape());
    ASSERT_EQ(packed.bits_set(), filter.bits_set());
    ASSERT_LT(packed.memory_bytes(), filter.memory_bytes());
    ASSERT_EQ(set_bits(dense(packed)), set_bits(filter));
    for (const PathHash& hash : added) ASSERT_TRUE(packed.may_contain(hash));
    for (int probe = 0; probe < 200; ++probe) {
      const PathHash hash = random_hash(random);
      ASSERT_EQ(packed.may_contain(hash), filter.may_contain(hash));
    }
  }
}

TEST(PackedFilterTest, Packed_PacksOnlyIfSmaller) {
  SPOOR_RANDOM(random);
  BloomFilter filter(level_0);
  EXPECT_FALSE(filter.is_packed());
  EXPECT_TRUE(filter.packed().is_packed());
  EXPECT_TRUE(filter.packed().packed().is_packed());
  double density = 0;
  while (filter.packed().is_packed()) {
    EXPECT_LT(filter.packed().memory_bytes(), level_0.byte_count() * 7 / 8);
    for (int i = 0; i < 2'000; ++i) filter.add(random_hash(random));
    density = FilterFigures::of(filter).density;
    ASSERT_LT(density, 0.3);
  }
  EXPECT_GT(density, 0.2);
  EXPECT_EQ(set_bits(filter.packed()), set_bits(filter));
  EXPECT_FALSE(BloomFilter({64, 1}).packed().is_packed());
}

TEST(PackedFilterTest, Add_UnpacksAndSetsSameBits) {
  SPOOR_RANDOM(random);
  BloomFilter filter({5'000, 3});
  for (int i = 0; i < 50; ++i) filter.add(random_hash(random));
  BloomFilter packed = filter.packed();
  ASSERT_TRUE(packed.is_packed());
  const PathHash hash = random_hash(random);
  EXPECT_EQ(packed.add(hash), filter.add(hash));
  EXPECT_FALSE(packed.add(hash));
  EXPECT_FALSE(packed.is_packed());
  EXPECT_EQ(set_bits(packed), set_bits(filter));
}

// Sizes about the blocks in which words are merged.
TEST(BloomFilterTest, MergeOfAnySize_IsUnionOfEveryWord) {
  SPOOR_RANDOM(random);
  for (const std::uint64_t blocks : {0U, 1U, 2U, 3U, 4U, 7U}) {
    for (const std::uint64_t more : {0U, 1U, 7U, 8U, 9U, 255U}) {
      const std::uint64_t count = blocks * 256 + more;
      if (count == 0) continue;
      std::vector<std::uint64_t> one(count);
      std::vector<std::uint64_t> two(count);
      std::vector<std::uint64_t> both(count);
      for (std::uint64_t at = 0; at < count; ++at) {
        one[at] = random.next();
        two[at] = random.next();
        both[at] = one[at] | two[at];
      }
      const BloomShape shape{count * 64, 4};
      BloomFilter merged(shape, one);
      merged.merge(BloomFilter(shape, two));
      ASSERT_TRUE(std::ranges::equal(merged.words(), both)) << count << " words";
    }
  }
}

TEST(PackedFilterTest, Merge_CombinesPackedAndUnpacked) {
  SPOOR_RANDOM(random);
  const BloomShape shape{9'001, 3};
  BloomFilter one(shape);
  BloomFilter two(shape);
  for (int i = 0; i < 100; ++i) {
    one.add(random_hash(random));
    two.add(random_hash(random));
  }
  ASSERT_TRUE(one.packed().is_packed() && two.packed().is_packed());
  std::set<std::uint64_t> both = set_bits(one);
  both.merge(set_bits(two));
  for (const BloomFilter& into : {one, one.packed()}) {
    for (const BloomFilter& from : {two, two.packed()}) {
      BloomFilter merged = into;
      merged.merge(from);
      EXPECT_FALSE(merged.is_packed());
      EXPECT_EQ(set_bits(merged), both);
    }
  }
}

TEST(PackedFilterTest, LargestShape_TakesFewBytes) {
  // Its only position is 0, and the one of the hash that is all zeros.
  const BloomShape shape{BloomShape::bits_max, 4};
  const auto bits = PackedBits::pack(std::vector<std::uint64_t>{1}, 100);
  ASSERT_TRUE(bits);
  const BloomFilter filter(shape, *bits);
  EXPECT_TRUE(filter.may_contain(PathHash{}));
  EXPECT_FALSE(filter.may_contain(PathHash{{1, 0, 0, 0}}));
  EXPECT_FALSE(filter.may_contain(PathHash{{0, 0, 0, 1}}));
  EXPECT_EQ(filter.bits_set(), 1U);
  EXPECT_LT(filter.memory_bytes(), 100U);
  EXPECT_TRUE(filter.packed().is_packed());
}

}  // namespace
}  // namespace spoor::tracker
