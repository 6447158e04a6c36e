#include "daemon/log_limit.h"

#include <gtest/gtest.h>

namespace spoor::daemon {
namespace {

using std::chrono::seconds;

TEST(LogLimitTest, EventsOfOneKey_AreOneLineAMinuteWithTheirNumber) {
  LogLimit limit;
  const base::SteadyTime start{};
  EXPECT_EQ(limit.note("a", 1, start), 1U);
  EXPECT_EQ(limit.note("a", 5, start + seconds(1)), std::nullopt);
  EXPECT_EQ(limit.note("b", 2, start + seconds(1)), 2U);
  EXPECT_EQ(limit.note("a", 1, start + seconds(59)), std::nullopt);
  EXPECT_EQ(limit.note("a", 1, start + seconds(60)), 7U);
  EXPECT_EQ(limit.note("a", 1, start + seconds(61)), std::nullopt);
}

TEST(LogLimitTest, ManyKeys_AreBounded) {
  LogLimit limit;
  std::size_t lines = 0;
  base::SteadyTime now{};
  for (int i = 0; i < 10'000; ++i) lines += limit.note(std::to_string(i), 1, now) ? 1U : 0U;
  EXPECT_EQ(lines, LogLimit::keys_max);
  now += LogLimit::pause;
  EXPECT_EQ(limit.note("later", 1, now), 1U);
}

}  // namespace
}  // namespace spoor::daemon
