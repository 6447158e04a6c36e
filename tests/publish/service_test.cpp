#include "publish/service.h"

#include <gtest/gtest.h>

namespace spoor::publish {
namespace {

using std::chrono::milliseconds;

TEST(NextPauseTest, Doubles_UpToAMinute) {
  milliseconds pause{0};
  for (const int seconds : {1, 2, 4, 8, 16, 32, 60, 60}) {
    pause = next_pause(pause, false);
    EXPECT_EQ(pause, std::chrono::seconds(seconds));
  }
}

// A server that refuses some of the requests is not left alone for a minute after each of them.
TEST(NextPauseTest, SomethingStored_IsTheFirstAgain) {
  EXPECT_EQ(next_pause(milliseconds(32'000), true), milliseconds(1'000));
}

TEST(WaitForAttemptTest, IsWhatTheServerAsksFor_WithinBounds) {
  EXPECT_EQ(wait_for_attempt(milliseconds(1'000), std::chrono::seconds(0)), milliseconds(1'000));
  EXPECT_EQ(wait_for_attempt(milliseconds(1'000), std::chrono::seconds(5)), milliseconds(5'000));
  EXPECT_EQ(wait_for_attempt(milliseconds(8'000), std::chrono::seconds(5)), milliseconds(8'000));
  EXPECT_EQ(wait_for_attempt(milliseconds(1'000), std::chrono::hours(100'000)), std::chrono::hours(1));
}

}  // namespace
}  // namespace spoor::publish
