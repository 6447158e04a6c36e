#include "scanner/usage/usage_sum.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace spoor::scanner {
namespace {

using std::chrono::seconds;

UsageEntry entry(const std::string& path, std::uint64_t bytes, std::vector<UsageEntry> children = {}) {
  UsageEntry made;
  made.path = path;
  made.bytes = bytes;
  made.files = 1;
  made.is_open = true;
  made.children = std::move(children);
  return made;
}

Usage usage(UsageEntry total, int as_of_s = 100) {
  Usage made;
  made.total = std::move(total);
  made.as_of = base::WallTime(seconds(as_of_s));
  made.saw_everything = true;
  return made;
}

Usage sum(const std::vector<Usage>& usages, const UsageOptions& options = {}) {
  UsageSum made;
  for (const Usage& one : usages) made.add(one);
  return made.result(options);
}

std::map<std::string, std::uint64_t> bytes_of(const UsageEntry& total) {
  std::map<std::string, std::uint64_t> found;
  for_each_entry(total, [&](const UsageEntry& one) { found[one.path] = one.bytes; });
  return found;
}

TEST(UsageSumTest, Entries_AreAddedByPath) {
  const auto total = sum({usage(entry("", 6, {entry("a", 1, {entry("a/x", 1)}), entry("b", 5)})),
                          usage(entry("", 30, {entry("a", 10, {entry("a/y", 4)}), entry("c", 20)}), 50)});
  EXPECT_EQ(bytes_of(total.total), (std::map<std::string, std::uint64_t>{
                                       {"", 36}, {"a", 11}, {"a/x", 1}, {"a/y", 4}, {"b", 5}, {"c", 20}}));
  EXPECT_EQ(total.total.children.front().path, "c") << "the largest first";
  EXPECT_EQ(total.total.children.front().depth, 1U);
  EXPECT_EQ(total.as_of, base::WallTime(seconds(50))) << "the oldest";
  EXPECT_TRUE(total.is_complete(total.total));
  EXPECT_FALSE(total.truncated);
  EXPECT_FALSE(total.is_absent);
}

TEST(UsageSumTest, NodeThatSawNotEverything_NothingIsComplete) {
  auto one = usage(entry("", 1, {entry("a", 1)}));
  one.saw_everything = false;
  const auto total = sum({one, usage(entry("", 1))});
  EXPECT_FALSE(total.is_complete(total.total));
  EXPECT_FALSE(total.is_complete(total.total.children.front()));
}

TEST(UsageSumTest, NodeWithoutAScanOfEverything_SumHasNoTime) {
  auto never = usage(entry("", 1));
  never.as_of.reset();
  EXPECT_EQ(sum({usage(entry("", 1)), never}).as_of, std::nullopt);
}

TEST(UsageSumTest, EntryThatANodeMayHaveInItsRest_IsNotComplete) {
  auto cut = entry("", 100, {entry("a", 60)});
  cut.rest.count = 3;
  cut.rest.bytes = 40;
  const auto total = sum({usage(cut), usage(entry("", 3, {entry("a", 1), entry("b", 2)}))});
  EXPECT_EQ(total.total.bytes, 103U);
  EXPECT_TRUE(total.is_complete(total.total)) << "the rest is in the sum of the whole";
  ASSERT_EQ(total.total.children.size(), 2U);
  EXPECT_TRUE(total.is_complete(total.total.children[0])) << "a is listed by both";
  EXPECT_FALSE(total.is_complete(total.total.children[1])) << "b may be in the rest of the first";
  EXPECT_EQ(total.total.rest.count, 3U);
  EXPECT_EQ(total.total.rest.bytes, 40U);
}

TEST(UsageSumTest, DirectoryThatANodeLeftClosed_WhatIsBelowIsNotComplete) {
  auto closed = entry("p", 800);
  closed.is_open = false;
  closed.dirs = 1;
  const auto total = sum({usage(entry("", 800, {closed})),
                          usage(entry("", 5, {entry("p", 5, {entry("p/x", 5, {entry("p/x/y", 5)})})}))});
  const UsageEntry& p = total.total.children.at(0);
  EXPECT_TRUE(total.is_complete(p));
  EXPECT_FALSE(total.is_complete(p.children.at(0)));
  EXPECT_FALSE(total.is_complete(p.children.at(0).children.at(0))) << "nor what is below that";
}

TEST(UsageSumTest, DirectoryThatANodeCouldNotRead_WhatIsBelowIsNotComplete) {
  auto unread = entry("", 0);
  unread.is_unread = true;
  unread.complete = false;
  const auto total = sum({usage(unread), usage(entry("", 5, {entry("p", 5, {entry("p/x", 5)})}))});
  EXPECT_FALSE(total.is_complete(total.total));
  EXPECT_FALSE(total.is_complete(total.total.children.at(0)));
  EXPECT_FALSE(total.is_complete(total.total.children.at(0).children.at(0)));
}

TEST(UsageSumTest, Growth_IsUnknownIfANodeKeepsNoHistory) {
  const auto grown = [](std::int64_t bytes, int since_s) {
    UsageGrowth growth;
    growth.bytes = bytes;
    growth.since = base::WallTime(seconds(since_s));
    return growth;
  };
  auto one = usage(entry("", 5, {entry("q", 3)}));
  one.history_since = base::WallTime(seconds(10));
  one.total.growth = grown(5, 40);
  one.total.children[0].growth = grown(3, 40);
  auto other = one;
  other.history_since = base::WallTime(seconds(60));
  other.total.growth = grown(-1, 60);
  const auto both = sum({one, other});
  ASSERT_TRUE(both.total.growth);
  EXPECT_EQ(both.total.growth->bytes, 4);
  EXPECT_EQ(both.total.growth->since, base::WallTime(seconds(60))) << "where one of them begins later";
  EXPECT_EQ(both.history_since, base::WallTime(seconds(60)));
  auto without = usage(entry("", 0));
  without.is_absent = true;
  const auto unknown = sum({one, without});
  EXPECT_FALSE(unknown.total.growth) << "it may have had it then";
  EXPECT_FALSE(unknown.total.children.at(0).growth);
  EXPECT_FALSE(unknown.history_since);
}

TEST(UsageSumTest, Owners_AreAddedUpById) {
  const auto with = [](std::vector<OwnerEntry> list) {
    auto node = usage(entry("", 5));
    node.owners.emplace().list = std::move(list);
    return node;
  };
  const auto owners = [](const std::vector<Usage>& nodes) { return sum(nodes, {.owners = true}).owners; };
  const auto one = with({{{1, 2}, {1, 10, 100}}, {{3, 4}, {2, 20, 200}}});
  auto other = with({{{3, 4}, {1, 1, 1}}});
  const auto both = owners({one, other});
  ASSERT_TRUE(both);
  EXPECT_TRUE(both->complete);
  EXPECT_EQ(both->list, (std::vector<OwnerEntry>{{{3, 4}, {3, 21, 201}}, {{1, 2}, {1, 10, 100}}}));
  EXPECT_FALSE(sum({one, other}).owners) << "they were not asked for";

  other.owners->rest_count = 2;
  other.owners->rest = {5, 6, 7};
  const auto cut = owners({one, other});
  EXPECT_FALSE(cut->complete) << "an owner that one node lists may be in the rest of the other";
  EXPECT_EQ(cut->rest_count, 2U);
  EXPECT_EQ(cut->rest, (OwnedTotals{5, 6, 7}));

  auto absent = usage(entry("", 0));
  absent.is_absent = true;
  EXPECT_TRUE(owners({one, absent})) << "it has no files";
  EXPECT_FALSE(owners({one, usage(entry("", 5))})) << "it keeps none, and has files";
  auto large = with({});
  large.total.bytes = sum_max;
  EXPECT_FALSE(owners({one, large})) << "a sum that wraps around would be too small";
}

TEST(UsageSumTest, ChildrenBeyondTheBounds_AreSummedInTheRest) {
  const std::vector<Usage> usages{
      usage(entry("", 10, {entry("a", 1), entry("b", 2), entry("c", 3), entry("d", 4)}))};
  const auto shown = sum(usages, {.children_max = 2});
  EXPECT_EQ(bytes_of(shown.total), (std::map<std::string, std::uint64_t>{{"", 10}, {"d", 4}, {"c", 3}}));
  EXPECT_EQ(shown.total.rest.count, 2U);
  EXPECT_EQ(shown.total.rest.bytes, 3U);
  EXPECT_FALSE(shown.truncated) << "as requested";
  const auto three = sum(usages, {.entries_max = 3});
  EXPECT_TRUE(three.truncated);
  EXPECT_EQ(three.total.rest.bytes, 1U);
  const auto short_ones = sum(usages, {.path_bytes_max = 1});
  EXPECT_TRUE(short_ones.truncated);
  EXPECT_EQ(short_ones.total.children.size(), 1U);
}

TEST(UsageSumTest, MoreDirectoriesThanAreHeld_AreSummedInTheRest) {
  std::vector<UsageEntry> many;
  for (std::size_t i = 0; i < UsageSum::entries_held_max + 5; ++i)
    many.push_back(entry(std::to_string(i), 1));
  const auto count = many.size();
  const auto total = sum({usage(entry("", count, std::move(many)))});
  EXPECT_EQ(total.total.bytes, count);
  EXPECT_EQ(total.total.children.size(), UsageSum::entries_held_max);
  EXPECT_EQ(total.total.rest.bytes, 5U);
  EXPECT_TRUE(total.truncated);
}

TEST(UsageSumTest, EntriesOutsideOfTheirParent_AreIgnored) {
  const auto total = sum({usage(
      entry("a", 7, {entry("b", 1), entry("a/x/y", 2), entry("", 3), entry("a", 4), entry("a/x", 5)}))});
  EXPECT_EQ(bytes_of(total.total), (std::map<std::string, std::uint64_t>{{"a", 7}, {"a/x", 5}}));
}

TEST(UsageSumTest, EntryListedTwice_LeavesTheOthersSums) {
  auto found = bytes_of(
      sum({usage(entry("", 7, {entry("twice", 1), entry("twice", 2)})), usage(entry("", 3, {entry("a", 3)}))})
          .total);
  found.erase("twice");
  EXPECT_EQ(found, (std::map<std::string, std::uint64_t>{{"", 10}, {"a", 3}}));
}

TEST(UsageSumTest, AbsentOnAllNodes_IsAbsent) {
  auto absent = usage(entry("a", 0));
  absent.is_absent = true;
  EXPECT_TRUE(sum({absent, absent}).is_absent);
  EXPECT_FALSE(sum({absent, usage(entry("a", 1))}).is_absent);
}

TEST(UsageSumTest, CopiedBytes_AreDividedOnceAfterTheSum) {
  std::vector<Usage> nodes;
  for (int node = 0; node < 3; ++node) {
    auto one = usage(entry("", 110));
    one.total.copied[3] = 100;
    one.has_copy_rules = true;
    nodes.push_back(one);
  }
  const auto total = sum(nodes);
  EXPECT_TRUE(total.has_copy_rules);
  EXPECT_EQ(total.total.logical_bytes(), 130U) << "100 on three nodes, and 10 on each";
}

TEST(UsageSumTest, Figures_Saturate) {
  const auto total = sum({usage(entry("", sum_max)), usage(entry("", 5))});
  EXPECT_EQ(total.total.bytes, sum_max);
}

}  // namespace
}  // namespace spoor::scanner
