#include "tests/fakes/manual_clock.h"

#include <gtest/gtest.h>

namespace spoor::fakes {
namespace {

using std::chrono::hours;
using std::chrono::seconds;

TEST(ManualClockTest, Clock_MovesOnlyByAdvanceAndSetWall) {
  ManualClock clock;
  const auto wall = clock.wall_now();
  const auto steady = clock.steady_now();
  EXPECT_EQ(clock.wall_now(), wall);
  clock.advance(seconds(5));
  EXPECT_EQ(clock.wall_now() - wall, seconds(5));
  EXPECT_EQ(clock.steady_now() - steady, seconds(5));
  clock.set_wall(wall - hours(24));
  EXPECT_EQ(clock.wall_now(), wall - hours(24));
  EXPECT_EQ(clock.steady_now() - steady, seconds(5));
}

}  // namespace
}  // namespace spoor::fakes
