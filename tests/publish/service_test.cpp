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

}  // namespace
}  // namespace spoor::publish
