#include "scanner/audit/audit_state.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>

#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using namespace std::chrono_literals;
using base::WallTime;

constexpr auto period = 30h;
constexpr WallTime start{1'000h};

AuditState advanced_to(AuditState state, WallTime now) {
  state.advance_to(now, period);
  return state;
}

TEST(AuditStateTest, JustBegun_NothingIsDue) {
  const AuditState state = advanced_to(AuditState::begun(start), start);
  EXPECT_EQ(state.due(1000, period), 0U);
  EXPECT_EQ(state.oldest(), start);
}

TEST(AuditStateTest, PartOfPeriodElapsed_ProportionalShareIsDue) {
  AuditState state = advanced_to(AuditState::begun(start), start + 3h);
  EXPECT_EQ(state.due(1000, period), 100U);
  state.visited(100, 1000, false);
  EXPECT_EQ(state.due(1000, period), 0U);
  state.advance_to(start + 6h, period);
  EXPECT_EQ(state.due(1000, period), 100U);
}

TEST(AuditStateTest, PeriodElapsed_AllRemainingDirectoriesAreDue) {
  const AuditState state = advanced_to(AuditState::begun(start), start + period);
  EXPECT_EQ(state.due(1000, period), std::numeric_limits<std::uint64_t>::max());
}

TEST(AuditStateTest, RoundFinishedEarly_NextRoundWaitsForPeriodEnd) {
  AuditState state = advanced_to(AuditState::begun(start), start + 1h);
  state.visited(10, 1000, true);
  EXPECT_FALSE(state.advance_to(start + 29h, period));
  EXPECT_EQ(state.due(1000, period), 0U);
  EXPECT_TRUE(state.advance_to(start + 31h, period));
  state.advance_to(start + 33h, period);
  EXPECT_EQ(state.due(1000, period), 100U) << "the round began when the last one ended";
}

TEST(AuditStateTest, LongPauseBetweenScans_IsNotMadeUpFor) {
  AuditState state = advanced_to(AuditState::begun(start), start + 1h);
  state.visited(1000, 1000, true);
  EXPECT_TRUE(state.advance_to(start + 10 * period, period));
  EXPECT_EQ(state.due(1000, period), 0U);
}

TEST(AuditStateTest, ClockSetBack_RoundContinues) {
  AuditState state = advanced_to(AuditState::begun(start + 9000h), start + 9015h);
  state.visited(500, 1000, false);
  EXPECT_FALSE(state.advance_to(start, period));
  EXPECT_EQ(state.due(1000, period), 0U);
  EXPECT_LE(state.oldest(), start) << "no time lies ahead of the clock";
  EXPECT_EQ(state.oldest(), start - 15h) << "as old as it was";
  state.advance_to(start + 3h, period);
  EXPECT_EQ(state.due(1000, period), 100U);
}

TEST(AuditStateTest, ClockSetBackBetweenRounds_NextRoundIsNotDelayed) {
  AuditState state = advanced_to(AuditState::begun(start + 9000h), start + 9030h);
  state.visited(1000, 1000, true);
  state.advance_to(start, period);
  EXPECT_EQ(state.due(1000, period), 0U);
  state.advance_to(start + period, period);
  state.advance_to(start + period + 3h, period);
  EXPECT_GE(state.due(1000, period), 100U);
}

// Their times are joined, two by two.
TEST(AuditStateTest, ManyScansInRound_NoTimeIsNewerThanReading) {
  constexpr std::uint64_t total = 300;
  AuditState state = AuditState::begun(start);
  for (std::uint64_t read = 1; read <= total; ++read) {
    state.advance_to(start + std::chrono::minutes(read), period);
    state.visited(1, total, read == total);
  }
  ASSERT_TRUE(state.advance_to(start + period, period));
  for (std::uint64_t read = 0; read < total; ++read) {
    ASSERT_LE(state.oldest(), start + std::chrono::minutes(read + 1)) << "the next one was read then";
    ASSERT_GE(state.oldest(), start + std::chrono::minutes(read)) << "one scan before at most";
    state.visited(1, total, read + 1 == total);
  }
}

TEST(AuditStateTest, Text_RoundTripsAndMalformedIsRefused) {
  AuditState state = advanced_to(AuditState::begun(start), start + 3h);
  state.visited(100, 1000, false);
  state.advance_to(start + 30h, period);
  state.visited(900, 1000, true);
  EXPECT_TRUE(state.advance_to(start + 31h, period));
  state.advance_to(start + 33h, period);
  state.visited(50, 1000, false);
  const auto read = AuditState::parse(state.to_text());
  ASSERT_TRUE(read);
  EXPECT_EQ(read->to_text(), state.to_text());
  EXPECT_EQ(read->oldest(), state.oldest());
  for (const char* const text : {"", "{}", "null", "[]", R"({"round_began_ns":"x"})", R"({"now_ns":1})"}) {
    EXPECT_FALSE(AuditState::parse(text)) << text;
  }
}

// Scans at random times over many rounds, in a tree of 1000 directories: none is ever older than a period and
// the time between two scans, and oldest() is never newer than the oldest one, nor much older.
TEST(AuditStateTest, RandomScanTimes_NoDirectoryIsOlderThanPeriod) {
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
    if (state.advance_to(now, period)) at = 0;
    const std::uint64_t due = std::min(state.due(total, period), total - at);
    for (std::uint64_t count = 0; count < due; ++count) read[at++] = now;
    if (due > 0) state.visited(due, total, at == total);
    const WallTime oldest = *std::ranges::min_element(read);
    ASSERT_GE(oldest, now - period - 2 * pause_max) << "scan " << scan;
    ASSERT_LE(state.oldest(), oldest) << "scan " << scan;
    ASSERT_GE(state.oldest(), oldest - 2 * pause_max) << "scan " << scan;
  }
}

}  // namespace
}  // namespace spoor::scanner
