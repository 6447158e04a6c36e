#include "scanner/audit_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>

#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using namespace std::chrono_literals;
using base::WallTime;

constexpr auto period = 30h;
constexpr WallTime start{1'000h};

TEST(AuditStateTest, NothingIsDueAtOnce) {
  const AuditState state = AuditState::begun(start);
  EXPECT_EQ(state.due(1000, start, period), 0U);
  EXPECT_EQ(state.oldest(), start);
}

TEST(AuditStateTest, TheShareIsThatOfTheTimeThatPassed) {
  AuditState state = AuditState::begun(start);
  EXPECT_EQ(state.due(1000, start + 3h, period), 100U);
  state.visited(100, 1000, start + 3h, false);
  EXPECT_EQ(state.due(1000, start + 3h, period), 0U);
  EXPECT_EQ(state.due(1000, start + 6h, period), 100U);
}

TEST(AuditStateTest, AllThatIsLeftIsDueWhenThePeriodIsOver) {
  const AuditState state = AuditState::begun(start);
  EXPECT_EQ(state.due(1000, start + period, period), std::numeric_limits<std::uint64_t>::max());
}

TEST(AuditStateTest, ARoundThatCameToItsEndWaitsForTheNext) {
  AuditState state = AuditState::begun(start);
  state.visited(10, 1000, start + 1h, true);
  EXPECT_EQ(state.due(1000, start + 29h, period), 0U);
  EXPECT_FALSE(state.begin_next_round(start + 29h, period));
  EXPECT_TRUE(state.begin_next_round(start + 31h, period));
  EXPECT_EQ(state.due(1000, start + 33h, period), 100U) << "the round began when the last one ended";
}

TEST(AuditStateTest, TimeInWhichNobodyScannedIsNotMadeUpFor) {
  AuditState state = AuditState::begun(start);
  state.visited(1000, 1000, start + 1h, true);
  EXPECT_TRUE(state.begin_next_round(start + 10 * period, period));
  EXPECT_EQ(state.due(1000, start + 10 * period, period), 0U);
}

TEST(AuditStateTest, AClockSetBackDoesNotStopIt) {
  AuditState state = AuditState::begun(start + 9000h);
  EXPECT_FALSE(state.begin_next_round(start, period));
  EXPECT_EQ(state.due(1000, start + 3h, period), 100U);
}

TEST(AuditStateTest, TextGivesItBack) {
  AuditState state = AuditState::begun(start);
  state.visited(100, 1000, start + 3h, false);
  state.visited(900, 1000, start + 30h, true);
  EXPECT_TRUE(state.begin_next_round(start + 30h, period));
  state.visited(50, 1000, start + 33h, false);
  const auto read = AuditState::parse(state.to_text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_text(), state.to_text());
  EXPECT_EQ(read->oldest(), state.oldest());
  for (const char* const text : {"", "{}", "null", "[]", R"({"round_began_ns":"x"})"}) {
    EXPECT_FALSE(AuditState::parse(text)) << text;
  }
}

// Scans at random times over many rounds, in a tree of 1000 directories: none is ever older than a period and
// the time between two scans, and oldest() is never newer than the oldest one, nor much older.
TEST(AuditStateTest, NoDirectoryIsOlderThanThePeriod) {
  support::Random random;
  SCOPED_TRACE(random.trace());
  constexpr std::uint64_t total = 1000;
  AuditState state = AuditState::begun(start);
  std::vector<WallTime> read(total, start);
  std::uint64_t at = 0;
  WallTime now = start;
  constexpr auto pause_max = 60min;
  for (int scan = 0; scan < 2000; ++scan) {
    now += std::chrono::minutes(random.below(60));
    if (state.begin_next_round(now, period)) at = 0;
    const std::uint64_t due = std::min(state.due(total, now, period), total - at);
    for (std::uint64_t count = 0; count < due; ++count) read[at++] = now;
    if (due > 0) state.visited(due, total, now, at == total);
    const WallTime oldest = *std::ranges::min_element(read);
    ASSERT_GE(oldest, now - period - 2 * pause_max) << "scan " << scan;
    ASSERT_LE(state.oldest(), oldest) << "scan " << scan;
    ASSERT_GE(state.oldest(), oldest - 2 * pause_max) << "scan " << scan;
  }
}

}  // namespace
}  // namespace spoor::scanner
