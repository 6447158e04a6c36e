#include "config/suggest.h"

#include <gtest/gtest.h>

#include <array>

namespace spoor::config {
namespace {

constexpr std::array<std::string_view, 6> known = {"node",          "node.name",    "tracker",
                                                   "tracker.items", "scan.threads", "peers.timeout"};

TEST(SuggestTest, MisspelledKey_SuggestsNearestByEditDistance) {
  EXPECT_EQ(nearest_key("tracker.item", known), "tracker.items");
  EXPECT_EQ(nearest_key("tracker.itmes", known), "tracker.items");
  EXPECT_EQ(nearest_key("traker", known), "tracker");
}

TEST(SuggestTest, KeyInWrongSection_SuggestsRightSection) {
  EXPECT_EQ(nearest_key("items", known), "tracker.items");
  EXPECT_EQ(nearest_key("scan.timeout", known), "peers.timeout");
}

TEST(SuggestTest, EmptyOrHugeKey_StillGetsSuggestion) {
  EXPECT_NE(nearest_key("", known), "");
  EXPECT_NE(nearest_key(std::string(100'000, 'z'), known), "");
}

}  // namespace
}  // namespace spoor::config
