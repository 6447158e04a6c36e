#include "tests/fakes/manual_clock.h"

#include <gtest/gtest.h>

namespace spoor::fakes {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(ManualClockTest, UntouchedClock_StandsStill) {
  const ManualClock clock;
  EXPECT_EQ(clock.wall_now(), clock.wall_now());
  EXPECT_EQ(clock.steady_now(), clock.steady_now());
}

TEST(ManualClockTest, Advance_MovesWallAndSteadyTime) {
  ManualClock clock;
  const auto wall = clock.wall_now();
  const auto steady = clock.steady_now();
  clock.advance(seconds(5));
  EXPECT_EQ(clock.wall_now() - wall, seconds(5));
  EXPECT_EQ(clock.steady_now() - steady, seconds(5));
}

TEST(ManualClockTest, SetWall_KeepsSteadyTime) {
  ManualClock clock;
  const auto steady = clock.steady_now();
  const auto earlier = clock.wall_now() - hours(24);
  clock.set_wall(earlier);
  EXPECT_EQ(clock.wall_now(), earlier);
  EXPECT_EQ(clock.steady_now(), steady);
}

}  // namespace
}  // namespace spoor::fakes
