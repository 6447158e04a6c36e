#include "tracker/filter/live_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <barrier>
#include <deque>
#include <limits>
#include <thread>
#include <vector>

#include "tests/support/sanitizer.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

constexpr std::uint64_t word_max = std::numeric_limits<std::uint64_t>::max();

// As all processors have it, and as this one has it.
std::vector<bool> widths() { return has_avx512() ? std::vector{false, true} : std::vector{false}; }

std::vector<BloomShape> shapes() {
  std::vector<BloomShape> shapes{BloomShape::for_items(200'000, 0.1), {1, 1}, {64, 3}, {1000, 7}};
  // About the smallest that the wide way takes, powers of two, odd ones.
  for (const std::uint64_t bits : {16383U, 16384U, 16385U, 16386U, 65536U, 958'505U, 1'000'003U, 1U << 24U}) {
    shapes.push_back({bits, 4});
  }
  return shapes;
}

TEST(LiveFilterTest, ScalarAndAvx512Lookups_MatchBloomFilter) {
  SPOOR_RANDOM(random);
  for (const BloomShape shape : shapes()) {
    LiveFilter filter(shape);
    BloomFilter expected(shape);
    const std::uint64_t keys = shape.bits / 8 < 2000 ? shape.bits / 8 : 2000;
    std::vector<PathHash> added;
    for (std::uint64_t i = 0; i < keys; ++i) {
      added.push_back(random_hash(random));
      filter.add(added.back());
      expected.add(added.back());
    }
    for (const bool wide : widths()) EXPECT_EQ(filter.may_contain_first(added, wide), added.size());
    for (int i = 0; i < 20'000; ++i) {
      const PathHash hash = random_hash(random);
      const std::size_t there = expected.may_contain(hash) ? 1 : 0;
      ASSERT_EQ(filter.may_contain(hash), there != 0);
      for (const bool wide : widths()) ASSERT_EQ(filter.may_contain_first({&hash, 1}, wide), there);
    }
  }
}

// Where a quotient of doubles goes wrong first.
TEST(LiveFilterTest, KeysNearMultiplesOfFilterSize_AreFound) {
  SPOOR_RANDOM(random);
  for (const BloomShape shape : shapes()) {
    for (int i = 0; i < (support::is_sanitized ? 200 : 2000); ++i) {
      const std::uint64_t multiple = random.next() / shape.bits * shape.bits;
      const std::uint64_t first = i == 0 ? word_max : multiple + random.below(3) - 1;
      const PathHash hash{{first, first, 0, 0}};  // all positions the same
      LiveFilter filter(shape);
      filter.add(hash);
      for (const bool wide : widths()) {
        ASSERT_EQ(filter.may_contain_first({&hash, 1}, wide), 1U) << first << " in " << shape.bits;
      }
    }
  }
}

// Two threads write to all words of filters as small as these.
TEST(LiveFilterTest, ConcurrentAdds_LoseNoBit) {
  SPOOR_RANDOM(random);
  constexpr std::size_t rounds = support::is_sanitized ? 1000 : 5000;
  using Keys = std::array<PathHash, 16>;
  std::deque<LiveFilter> filters;
  std::array<std::vector<Keys>, 2> keys;
  for (std::size_t round = 0; round < rounds; ++round) {
    filters.emplace_back(BloomShape{1024, 4});
    for (auto& each : keys) std::ranges::generate(each.emplace_back(), [&] { return random_hash(random); });
  }
  std::barrier start(2);
  const auto add = [&](const std::vector<Keys>& own) {
    for (std::size_t round = 0; round < rounds; ++round) {
      start.arrive_and_wait();
      for (const PathHash& hash : own[round]) filters[round].add(hash);
    }
  };
  std::thread other(add, keys[1]);
  add(keys[0]);
  other.join();
  for (std::size_t round = 0; round < rounds; ++round) {
    for (const auto& own : keys) ASSERT_EQ(filters[round].may_contain_first(own[round]), own[round].size());
  }
}

TEST(LiveFilterTest, MayContainFirst_CountsUpToFirstMissingKey) {
  SPOOR_RANDOM(random);
  LiveFilter filter(BloomShape::for_items(200'000, 0.1));
  std::vector<PathHash> hashes(10);
  for (PathHash& hash : hashes) hash = random_hash(random);
  for (std::size_t missing = 0; missing < hashes.size(); ++missing) {
    for (const bool wide : widths()) EXPECT_EQ(filter.may_contain_first(hashes, wide), missing);
    filter.add(hashes[missing]);
  }
}

}  // namespace
}  // namespace spoor::tracker
