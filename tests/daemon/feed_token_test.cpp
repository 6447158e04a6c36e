#include "daemon/api/changes_report.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/random.h"

namespace spoor::daemon {
namespace {

TEST(FeedTokenTest, RoundTrip_RandomPlaces_AreEqual) {
  SPOOR_RANDOM(random);
  for (int i = 0; i < 500; ++i) {
    const std::uint64_t since = random.next() >> random.below(64);
    FeedPlace place{.feed = random.letters(random.below(40)),
                    .since = since,
                    .until = since + random.below(UINT64_MAX - since),
                    .after = random.bytes(random.below(300))};
    if (random.one_in(2)) {
      place.file = random.bytes(random.below(256));
      std::replace(place.file->begin(), place.file->end(), '/', '_');
    }
    const std::string token = to_token(place);
    EXPECT_EQ(from_token(token), place);
    EXPECT_EQ(token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
              std::string::npos)
        << token;
  }
}

// Directories of a drive may lie deeper than any path that is marked.
TEST(FeedTokenTest, RoundTrip_LongPathsAndNames_AreEqual) {
  for (const std::size_t bytes : {4096U, 4097U, 20'000U}) {
    const FeedPlace place{"f00d", 3, 5, std::string(bytes, 'a')};
    EXPECT_EQ(from_token(to_token(place)), place) << bytes;
  }
  const FeedPlace place{"f00d", 3, 5, "a", std::string(765, 'n')};
  EXPECT_EQ(from_token(to_token(place)), place);
}

TEST(FeedTokenTest, InvalidToken_IsRejected) {
  SPOOR_RANDOM(random);
  const std::string token = to_token({"f00d", 3, 5, "a/b"});
  for (std::size_t size = 0; size < token.size() - 5; ++size) {
    if (const auto cut = from_token(token.substr(0, size))) {
      EXPECT_EQ(cut->until, 5U);
      EXPECT_TRUE(std::string("a/b").starts_with(cut->after));
    }
  }
  for (const char* bad :
       {"", "A", "====", "a b", "MSBmMDBkIDU=", "MSBmMDBkIDUgMyBh", "MyBmMDBkIDMgNSBh", "MiBmMDBkIDMgNSBh"}) {
    EXPECT_FALSE(from_token(bad)) << bad;
  }
  EXPECT_FALSE(from_token(to_token({"f00d", 5, 3, "a"}))) << "ends before it begins";
  for (int i = 0; i < 1000; ++i) from_token(random.bytes(random.below(60)));
}

}  // namespace
}  // namespace spoor::daemon
