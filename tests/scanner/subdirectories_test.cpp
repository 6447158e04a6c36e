#include "scanner/store/files.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/sanitizer.h"

namespace spoor::scanner {
namespace {

using Entries = std::vector<std::pair<std::string, std::uint64_t>>;

Entries entries_of(const Subdirectories& all) {
  Entries entries;
  for (std::size_t number = 0; number < all.size(); ++number) {
    entries.emplace_back(all[number].name, all[number].inode);
  }
  return entries;
}

TEST(SubdirectoriesTest, LongAndBinaryNames_AreKeptWhole) {
  const std::string longest(65'535, 'x');
  const std::string with_zero("a\0b", 3);
  Subdirectories all;
  EXPECT_TRUE(all.empty());
  EXPECT_EQ(all.memory_bytes(), std::string().capacity());
  all.add(longest, ~std::uint64_t{0});
  all.add(with_zero, 0);
  all.add(std::string(255, 'y'), 3);
  all.sort();
  EXPECT_EQ(entries_of(all),
            (Entries{{with_zero, 0}, {longest, ~std::uint64_t{0}}, {std::string(255, 'y'), 3}}));
}

TEST(SubdirectoriesTest, RandomNames_MatchSortedMap) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 200; ++round) {
    Subdirectories all;
    std::map<std::string, std::uint64_t> expected;
    for (std::uint64_t left = random.below(100); left > 0; --left) {
      const std::string name = random.bytes(random.between(1, 3));
      const std::uint64_t inode = expected.try_emplace(name, random.next()).first->second;
      all.add(name, inode);
    }
    all.sort();
    EXPECT_EQ(entries_of(all), Entries(expected.begin(), expected.end()));
  }
}

TEST(SubdirectoriesTest, MillionEntries_TakeSixteenBytesPlusNames) {
  constexpr std::uint64_t count = support::is_sanitized ? 100'000 : 1'000'000;
  Subdirectories all;
  for (std::uint64_t number = count; number > 0; --number) all.add(fmt::format("{:07}", number), number);
  all.sort();
  ASSERT_EQ(all.size(), count);
  for (const std::uint64_t number : {std::uint64_t{1}, count / 2, count}) {
    EXPECT_EQ(all[number - 1].name, fmt::format("{:07}", number));
    EXPECT_EQ(all[number - 1].inode, number);
  }
  EXPECT_LE(all.memory_bytes(), 2 * count * (16 + 7)) << "vectors that grew keep half of it free at most";
}

}  // namespace
}  // namespace spoor::scanner
