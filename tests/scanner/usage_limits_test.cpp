#include "scanner/usage/usage_limits.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "tests/scanner/history_node.h"

namespace spoor::scanner {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class UsageLimitsTest : public HistoryNode {
 protected:
  std::vector<LimitState> stored() {
    auto states = read_limits(*database);
    EXPECT_TRUE(states) << states.error().message;
    return states ? *states : std::vector<LimitState>();
  }
};

TEST_F(UsageLimitsTest, WithoutLimits_NothingIsStored) {
  scan_after(hours(1));
  EXPECT_THAT(stored(), IsEmpty());
  EXPECT_EQ(limits_json(stored()).dump(), "[]");
}

TEST_F(UsageLimitsTest, ExceededLimits_AreNamed) {
  options.limits = {
      {.path = "", .bytes = 100}, {.path = "a", .bytes = 99, .files = 1}, {.path = "none", .files = 1}};
  make_file("a/file", 100);
  scan_after(hours(1));
  const auto states = stored();
  ASSERT_EQ(states.size(), 3U);
  EXPECT_THAT(states[0].exceeded(), IsEmpty()) << "it is reached, not exceeded";
  EXPECT_THAT(states[1].exceeded(), ElementsAre("bytes"));
  EXPECT_THAT(states[2].exceeded(), IsEmpty());
  EXPECT_EQ(states[1].limit, options.limits[1]);
  EXPECT_EQ(states[1].bytes, 100U);
  EXPECT_EQ(states[1].scan, 1U);
  EXPECT_EQ(last.limits.size(), 3U);
  make_file("a/second", 1);
  mark("a");
  scan_after(hours(1));
  EXPECT_THAT(stored()[0].exceeded(), ElementsAre("bytes"));
  EXPECT_THAT(stored()[1].exceeded(), ElementsAre("bytes", "files"));
  options.limits = {};
  scan_after(hours(1));
  EXPECT_THAT(stored(), IsEmpty());
}

TEST_F(UsageLimitsTest, GrowthWithinADay_IsCompared) {
  options.limits = {{.path = "a", .growth_per_day = 100}};
  make_file("a/file", 1'000);
  scan_after(hours(1));
  EXPECT_EQ(stored()[0].growth_per_day, 0) << "the history begins here";
  make_file("a/second", 101);
  mark("a");
  scan_after(hours(1));
  EXPECT_THAT(stored()[0].exceeded(), ElementsAre("growth_per_day"));
  scan_after(hours(25));
  EXPECT_EQ(stored()[0].growth_per_day, 0);
  EXPECT_THAT(stored()[0].exceeded(), IsEmpty());
  remove("a");
  mark("a");
  scan_after(hours(1));
  EXPECT_EQ(stored()[0].growth_per_day, -1'101);
  EXPECT_THAT(stored()[0].exceeded(), IsEmpty());
}

TEST_F(UsageLimitsTest, IncompleteTotals_ExceedSizesButNotGrowth) {
  options.limits = {{.path = "", .bytes = 500, .growth_per_day = 100}, {.path = "a", .growth_per_day = 100}};
  make_file("a/b/file", 1'000);
  make_file("file", 501);
  reader.list_errors["a"] = EIO;
  scan_after(hours(1));
  EXPECT_FALSE(stored()[0].complete);
  EXPECT_THAT(stored()[0].exceeded(), ElementsAre("bytes"));
  EXPECT_FALSE(stored()[0].growth_per_day);
  reader.repair();
  scan_after(hours(1));
  EXPECT_TRUE(stored()[0].complete);
  EXPECT_THAT(stored()[0].exceeded(), ElementsAre("bytes"));
  EXPECT_THAT(stored()[1].exceeded(), IsEmpty()) << "it was unread before";
  scan_after(hours(25));
  EXPECT_EQ(stored()[0].growth_per_day, 0);
}

// The rows of all directories below it may be outdated, however deep they are.
TEST_F(UsageLimitsTest, BelowAnUnreadDirectory_TotalsAreNotComplete) {
  options.limits = {{.path = "a/b/c", .bytes = 1}, {.path = "z/b", .bytes = 1}};
  make_file("a/b/c/file", 10);
  make_file("z/b/file", 10);
  scan_after(hours(1));
  EXPECT_TRUE(stored()[0].complete);
  reader.list_errors["a"] = EIO;
  mark("a");
  scan_after(hours(1));
  EXPECT_FALSE(stored()[0].complete);
  EXPECT_FALSE(stored()[0].growth_per_day);
  EXPECT_TRUE(stored()[1].complete) << "it is not below it";
}

TEST_F(UsageLimitsTest, WithoutHistory_GrowthIsUnknown) {
  options.history.keep = false;
  options.limits = {{.path = "a", .growth_per_day = 1}};
  make_file("a/file", 1'000);
  scan_after(hours(1));
  EXPECT_FALSE(stored()[0].growth_per_day);
  EXPECT_THAT(stored()[0].exceeded(), IsEmpty());
  const auto json = limits_json(stored());
  EXPECT_TRUE(json[0]["current"]["growth_per_day"].is_null());
  EXPECT_TRUE(json[0]["bytes"].is_null());
}

TEST_F(UsageLimitsTest, NotifiedLimits_AreKeptWhileExceeded) {
  options.limits = {{.path = "a", .bytes = 99, .files = 1}};
  make_file("a/file", 100);
  scan_after(hours(1));
  auto states = stored();
  EXPECT_THAT(states[0].not_notified(), ElementsAre("bytes"));
  states[0].notified = states[0].exceeded();
  ASSERT_TRUE(store_limits(*database, states));
  make_file("a/second", 1);
  mark("a");
  scan_after(hours(1));
  EXPECT_THAT(stored()[0].notified, ElementsAre("bytes"));
  EXPECT_THAT(stored()[0].not_notified(), ElementsAre("files"));
  remove("a/file");
  mark("a");
  scan_after(hours(1));
  EXPECT_THAT(stored()[0].notified, IsEmpty());
}

TEST_F(UsageLimitsTest, LimitOfTheCluster_KeepsWhatIsKnownOfIt) {
  options.limits = {{.path = "a", .bytes = 1}, {.path = "a", .bytes = 50, .of_cluster = true}};
  make_file("a/file", 100);
  scan_after(hours(1));
  auto states = stored();
  EXPECT_THAT(states[0].exceeded(), ElementsAre("bytes"));
  EXPECT_EQ(states[1].bytes, 0U) << "the scan knows this node alone";
  EXPECT_FALSE(states[1].complete);
  EXPECT_EQ(states[1].scan, 0U);
  states[1].bytes = 500;
  states[1].scan = 1;
  ASSERT_TRUE(store_limits(*database, states));
  options.limits[1].bytes = 600;
  scan_after(hours(1));
  EXPECT_EQ(stored()[1].bytes, 500U);
  EXPECT_EQ(stored()[1].limit, options.limits[1]);
  EXPECT_EQ(stored()[1].scan, 1U);
  EXPECT_EQ(stored()[0].scan, 2U);
}

}  // namespace
}  // namespace spoor::scanner
