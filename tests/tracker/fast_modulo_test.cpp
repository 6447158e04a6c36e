#include "tracker/filter/bloom_filter.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/random.h"

namespace spoor::tracker {
namespace {

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

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

void expect_exact(std::uint64_t divisor, const std::vector<std::uint64_t>& numbers) {
  const FastModulo modulo(divisor);
  for (const std::uint64_t x : numbers) ASSERT_EQ(modulo(x), x % divisor) << x << " mod " << divisor;
}

TEST(FastModuloTest, EdgeValues_AreExact) {
  for (std::uint64_t divisor = 1; divisor <= 2'000; ++divisor) expect_exact(divisor, edges_of(divisor));
  for (unsigned power = 0; power < 64; ++power) {
    const std::uint64_t two = std::uint64_t{1} << power;
    expect_exact(two, edges_of(two));
    if (power > 1) expect_exact(two - 1, edges_of(two - 1));
    if (power < 63) expect_exact(two + 1, edges_of(two + 1));
  }
}

TEST(FastModuloTest, RandomValues_AreExact) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 20'000; ++round) {
    const std::uint64_t divisor = (random.next() >> random.between(28, 63)) + 1;
    std::vector<std::uint64_t> numbers = edges_of(divisor);
    for (int i = 0; i < 20; ++i) numbers.push_back(random.next() >> random.below(64));
    expect_exact(divisor, numbers);
  }
}

}  // namespace
}  // namespace spoor::tracker
