#include "tracker/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/random.h"
#include "tests/tracker/samples.h"
#include "tracker/errors.h"

namespace spoor::tracker {
namespace {

constexpr BloomShape level_0{958506, 4};
constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

BloomFilter random_filter(support::Random& random, BloomShape shape, std::uint64_t keys) {
  BloomFilter filter(shape);
  for (; keys > 0; --keys) filter.add(random_hash(random));
  return filter;
}

// Where a quotient changes, and the ends of everything.
std::vector<std::uint64_t> edges_of(std::uint64_t divisor) {
  std::vector<std::uint64_t> edges{0, 1, 2, most, most - 1, most / 2, most / 2 + 1};
  for (const std::uint64_t quotient :
       {std::uint64_t{1}, std::uint64_t{2}, most / divisor / 2, most / divisor}) {
    const std::uint64_t multiple = quotient * divisor;
    for (const std::uint64_t x : {multiple - 1, multiple, multiple + 1}) edges.push_back(x);
  }
  return edges;
}

TEST(FastModuloTest, EdgesAndRandomNumbers_AreExact) {
  SPOOR_RANDOM(random);
  std::vector<std::uint64_t> divisors;
  for (std::uint64_t divisor = 1; divisor <= 2'000; ++divisor) divisors.push_back(divisor);
  for (unsigned power = 0; power < 64; ++power) {
    const std::uint64_t two = std::uint64_t{1} << power;
    divisors.push_back(two);
    if (power > 1) divisors.push_back(two - 1);
    if (power < 63) divisors.push_back(two + 1);
  }
  for (int i = 0; i < 20'000; ++i) divisors.push_back((random.next() >> random.between(28, 63)) + 1);
  for (const std::uint64_t divisor : divisors) {
    const FastModulo modulo(divisor);
    std::vector<std::uint64_t> numbers = edges_of(divisor);
    for (int i = 0; i < 20; ++i) numbers.push_back(random.next() >> random.below(64));
    for (const std::uint64_t x : numbers) ASSERT_EQ(modulo(x), x % divisor) << x << " mod " << divisor;
  }
}

TEST(BloomShapeTest, ItemsAndRate_GiveValidShapes) {
  EXPECT_EQ(BloomShape::for_items(200'000, 0.1), level_0);
  EXPECT_EQ(level_0.word_count(), 14977U);
  EXPECT_EQ(level_0.byte_count(), 119816U);
  const BloomShape one = BloomShape::for_items(1'000, 0.1);
  EXPECT_GT(BloomShape::for_items(2'000, 0.1).bits, one.bits);
  EXPECT_GT(BloomShape::for_items(1'000, 0.01).bits, one.bits);
  EXPECT_GT(BloomShape::for_items(1'000, 0.01).hashes, one.hashes);
  for (const double p : {1e-300, 0.5, 0.999999, 1 - 1e-16}) {
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{1} << 40U, most}) {
      const BloomShape shape = BloomShape::for_items(n, p);
      EXPECT_TRUE(BloomShape::checked(shape.bits, shape.hashes)) << n << ' ' << p;
    }
  }
}

// ancestor 4: m = 0 divides by zero, k = 0 answers yes to all.
TEST(BloomShapeTest, ShapeOutOfRange_IsRefused) {
  EXPECT_TRUE(BloomShape::checked(1, 1));
  EXPECT_TRUE(BloomShape::checked(BloomShape::bits_max, BloomShape::hashes_max));
  for (const BloomShape& shape :
       {BloomShape{0, 4}, BloomShape{958506, 0}, BloomShape{0, 0}, BloomShape{BloomShape::bits_max + 1, 4},
        BloomShape{958506, BloomShape::hashes_max + 1}, BloomShape{most, 4}, BloomShape{64, most}}) {
    const auto checked = BloomShape::checked(shape.bits, shape.hashes);
    ASSERT_FALSE(checked) << shape.bits << ' ' << shape.hashes;
    EXPECT_EQ(checked.error().code, Errc::invalid_shape);
  }
}

TEST(BloomFilterTest, BitPositions_FollowFormatForEveryHashCount) {
  SPOOR_RANDOM(random);
  for (std::uint64_t hashes = 1; hashes <= BloomShape::hashes_max; ++hashes) {
    const BloomShape shape{random.between(1, 5'000), hashes};
    const PathHash hash = random_hash(random);
    BloomFilter filter(shape);
    EXPECT_FALSE(filter.may_contain(hash));
    filter.add(hash);
    EXPECT_TRUE(filter.may_contain(hash));
    std::vector<std::uint64_t> expected(shape.word_count());
    for (std::uint64_t i = 0; i < hashes; ++i) {
      const std::uint64_t bit =
          (hash.words[i % 2] + i * hash.words[2 + (((i + (i % 2)) % 4) / 2)]) % shape.bits;
      expected[bit / 64] |= std::uint64_t{1} << (bit % 64);
    }
    ASSERT_EQ(bits_of(filter), expected) << shape.bits << ' ' << hashes;
  }
}

TEST(BloomFilterTest, Add_ReturnsWhetherAnyBitWasNew) {
  BloomFilter whole(level_0);
  EXPECT_TRUE(whole.add(hash_path("bucket")));
  EXPECT_FALSE(whole.add(hash_path("bucket")));
  const std::vector<std::uint64_t> bits = bits_of(whole);
  // One of four positions unknown is enough, whichever it is.
  for (std::uint64_t bit = 0; bit < level_0.bits; ++bit) {
    const std::uint64_t mask = std::uint64_t{1} << (bit % 64);
    if ((bits[bit / 64] & mask) == 0) continue;
    std::vector<std::uint64_t> words = bits;
    words[bit / 64] &= ~mask;
    BloomFilter lacking(level_0, std::move(words));
    EXPECT_FALSE(lacking.may_contain(hash_path("bucket")));
    EXPECT_TRUE(lacking.add(hash_path("bucket"))) << bit;
    EXPECT_EQ(bits_of(lacking), bits);
  }
}

TEST(BloomFilterTest, BitsBeyondShape_AreDropped) {
  // They belong to no key, and would count as density and as items.
  for (const std::uint64_t bits : {1U, 63U, 64U, 65U, 127U, 128U}) {
    const BloomShape shape{bits, 1};
    const BloomFilter filter(shape, std::vector<std::uint64_t>(shape.word_count(), ~std::uint64_t{0}));
    EXPECT_EQ(filter.bits_set(), bits);
  }
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

TEST(FilterFiguresTest, FilterFilledToCapacity_HasDesignedFigures) {
  SPOOR_RANDOM(random);
  const BloomFilter filter = random_filter(random, level_0, 200'000);
  const auto figures = FilterFigures::of(filter);
  EXPECT_NEAR(figures.items, 200'000, 2'000);
  EXPECT_NEAR(figures.density, 0.566, 0.01);
  EXPECT_NEAR(figures.fp_rate, 0.102, 0.01);

  int false_positives = 0;
  for (int i = 0; i < 50'000; ++i) false_positives += filter.may_contain(random_hash(random)) ? 1 : 0;
  EXPECT_NEAR(false_positives / 50'000.0, figures.fp_rate, 0.01);
}

TEST(FilterFiguresTest, EmptyAndFullFilter_HaveFiniteFigures) {
  const auto empty = FilterFigures::of(BloomFilter(level_0));
  EXPECT_EQ(empty.items, 0);
  EXPECT_EQ(empty.density, 0);
  EXPECT_EQ(empty.fp_rate, 0);
  const auto full = FilterFigures::of(BloomFilter({100, 4}, {most, most}));
  EXPECT_DOUBLE_EQ(full.items, 25 * std::log(200));  // as with half a bit left
  EXPECT_EQ(full.density, 1);
  EXPECT_EQ(full.fp_rate, 1);
}

TEST(FilterFiguresTest, EachFurtherBit_IncreasesItems) {
  for (const std::uint64_t bits : {1U, 2U, 64U, 130U}) {
    double items = 0;
    for (std::uint64_t set = 1; set <= bits; ++set) {
      const double more = FilterFigures::of(BloomShape{bits, 3}, set).items;
      ASSERT_GT(more, items) << set << " of " << bits;
      items = more;
    }
  }
}

// Up to an eighth of the bits: few enough that any of these sizes is packed.
TEST(PackedFilterTest, PackedFilter_HasTheBitsFiguresAndAnswersOfTheDenseOne) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 60; ++round) {
    BloomFilter filter({random.between(2'000, 60'000), random.between(1, 12)});
    std::vector<PathHash> added;
    for (std::uint64_t n = random.below(filter.shape().bits / filter.shape().hashes / 8 + 1); n > 0; --n)
      filter.add(added.emplace_back(random_hash(random)));
    const BloomFilter packed = filter.packed();
    ASSERT_TRUE(packed.is_packed() && packed.packed().is_packed());
    ASSERT_EQ(packed.shape(), filter.shape());
    ASSERT_EQ(packed.bits_set(), filter.bits_set());
    ASSERT_EQ(FilterFigures::of(packed).items, FilterFigures::of(filter).items);
    ASSERT_LT(packed.memory_bytes(), filter.memory_bytes());
    ASSERT_EQ(bits_of(packed), bits_of(filter));
    for (const PathHash& hash : added) ASSERT_TRUE(packed.may_contain(hash) && filter.may_contain(hash));
    for (int probe = 0; probe < 200; ++probe) {
      const PathHash hash = random_hash(random);
      ASSERT_EQ(packed.may_contain(hash), filter.may_contain(hash));
    }
  }
}

TEST(PackedFilterTest, Packed_PacksOnlyIfSmaller) {
  SPOOR_RANDOM(random);
  BloomFilter filter(level_0);
  double density = 0;
  while (filter.packed().is_packed()) {
    EXPECT_LT(filter.packed().memory_bytes(), level_0.byte_count() * 7 / 8);
    for (int i = 0; i < 2'000; ++i) filter.add(random_hash(random));
    density = FilterFigures::of(filter).density;
    ASSERT_LT(density, 0.3);
  }
  EXPECT_GT(density, 0.2);
  EXPECT_EQ(bits_of(filter.packed()), bits_of(filter));
  EXPECT_FALSE(BloomFilter({64, 1}).packed().is_packed());
}

TEST(PackedFilterTest, AddAndMerge_UnpackAndSetTheSameBits) {
  SPOOR_RANDOM(random);
  const BloomShape shape{9'001, 3};
  const BloomFilter one = random_filter(random, shape, 100);
  const BloomFilter two = random_filter(random, shape, 100);
  std::vector<std::uint64_t> both = bits_of(one);
  std::ranges::transform(both, bits_of(two), both.begin(), std::bit_or<>());
  for (const BloomFilter& into : {one, one.packed()}) {
    for (const BloomFilter& from : {two, two.packed()}) {
      BloomFilter merged = into;
      merged.merge(from);
      EXPECT_FALSE(merged.is_packed());
      EXPECT_EQ(bits_of(merged), both);
    }
    BloomFilter added = into;
    BloomFilter expected = one;
    const PathHash hash = random_hash(random);
    EXPECT_EQ(added.add(hash), expected.add(hash));
    EXPECT_FALSE(added.add(hash));
    EXPECT_FALSE(added.is_packed());
    EXPECT_EQ(bits_of(added), bits_of(expected));
  }
}

TEST(PackedFilterTest, LargestShape_TakesFewBytes) {
  // Its only position is 0, and the one of the hash that is all zeros.
  const auto bits = PackedBits::pack(std::vector<std::uint64_t>{1}, 100);
  ASSERT_TRUE(bits);
  const BloomFilter filter({BloomShape::bits_max, 4}, *bits);
  EXPECT_TRUE(filter.may_contain(PathHash{}));
  EXPECT_FALSE(filter.may_contain(PathHash{{1, 0, 0, 0}}));
  EXPECT_FALSE(filter.may_contain(PathHash{{0, 0, 0, 1}}));
  EXPECT_EQ(filter.bits_set(), 1U);
  EXPECT_LT(filter.memory_bytes(), 100U);
  EXPECT_TRUE(filter.packed().is_packed());
}

}  // namespace
}  // namespace spoor::tracker
