#include "tracker/paths/copy_rules.h"

#include <gtest/gtest.h>

namespace spoor::tracker {
namespace {

TEST(CopyRulesTest, NoRules_EveryFactorIsOne) {
  const CopyRules rules;
  EXPECT_TRUE(rules.empty());
  EXPECT_EQ(rules.factor("a/b"), 1);
  EXPECT_EQ(rules.match("a"), std::nullopt);
  EXPECT_FALSE(rules.may_match_below(""));
}

TEST(CopyRulesTest, Glob_MatchesWholeComponentsOnly) {
  const CopyRules rules({{"bucket*", 3}, {"ec/[ab]", 1.5}});
  EXPECT_EQ(rules.match("bucket"), 3);
  EXPECT_EQ(rules.match("bucket-1"), 3);
  EXPECT_EQ(rules.match("my-bucket"), std::nullopt);
  EXPECT_EQ(rules.match("bucket-1/x"), std::nullopt) << "its parent's applies";
  EXPECT_EQ(rules.match("ec/a"), 1.5);
  EXPECT_EQ(rules.match("ec/c"), std::nullopt);
  EXPECT_EQ(rules.match("ec"), std::nullopt);
  EXPECT_EQ(rules.match(""), std::nullopt) << "the root holds all of them";
}

TEST(CopyRulesTest, Factor_IsThatOfTheLowestMatch) {
  const CopyRules rules({{"b/tmp", 1}, {"b*", 3}, {"b/*", 2}});
  EXPECT_EQ(rules.factor("b"), 3);
  EXPECT_EQ(rules.factor("b/tmp"), 1) << "the first rule that matches";
  EXPECT_EQ(rules.factor("b/tmp/x/y"), 1);
  EXPECT_EQ(rules.factor("b/x/y"), 2);
  EXPECT_EQ(rules.factor("bb/x"), 3);
  EXPECT_EQ(rules.factor("c/b"), 1);
  EXPECT_EQ(rules.factor(""), 1);
}

TEST(CopyRulesTest, MayMatchBelow_IsTrueOnTheWayToAMatch) {
  const CopyRules rules({{"a/*/c", 2}});
  EXPECT_TRUE(rules.may_match_below(""));
  EXPECT_TRUE(rules.may_match_below("a"));
  EXPECT_TRUE(rules.may_match_below("a/x"));
  EXPECT_FALSE(rules.may_match_below("a/x/c"));
  EXPECT_FALSE(rules.may_match_below("b"));
  EXPECT_FALSE(rules.may_match_below("b/x"));
}

TEST(CopyRulesTest, NamesOfAnyBytes_AreMatched) {
  const CopyRules rules({{"?", 2}});
  EXPECT_EQ(rules.match("\xff"), 2);
  EXPECT_EQ(rules.match("a\xff"), std::nullopt);
}

}  // namespace
}  // namespace spoor::tracker
