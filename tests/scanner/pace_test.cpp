#include "scanner/walk/pace.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using namespace std::chrono_literals;

class PaceTest : public ::testing::Test {
 protected:
  std::chrono::nanoseconds time_for(Pace& pace, int directories) {
    const auto start = clock_.steady_now();
    for (int count = 0; count < directories; ++count) pace.wait_until_due({});
    return clock_.steady_now() - start;
  }

  fakes::ManualClock clock_;
  InstantWaiter waiter_{clock_};
};

TEST_F(PaceTest, NoLimit_NeverWaits) {
  Pace pace(0, clock_, waiter_);
  EXPECT_EQ(time_for(pace, 10'000), 0ns);
  EXPECT_EQ(waiter_.waits, 0);
}

TEST_F(PaceTest, SlowRate_WaitsForEachDirectory) {
  Pace pace(2, clock_, waiter_);
  EXPECT_EQ(time_for(pace, 11), 5s);
  EXPECT_EQ(waiter_.waits, 10);
}

TEST_F(PaceTest, FastRate_WaitsOccasionally) {
  Pace pace(10'000, clock_, waiter_);
  const auto took = time_for(pace, 10'001);
  EXPECT_LE(took, 1s);
  EXPECT_GE(took, 980ms);
  EXPECT_LE(waiter_.waits, 101);
}

TEST_F(PaceTest, LostTime_IsNotMadeUpFor) {
  Pace pace(10, clock_, waiter_);
  pace.wait_until_due({});
  clock_.advance(10s);
  EXPECT_EQ(time_for(pace, 11), 1s);
}

TEST(SystemWaiterTest, StopRequested_EndsTheWait) {
  SystemWaiter waiter;
  std::stop_source stop;
  const std::jthread stopper([&] { stop.request_stop(); });
  waiter.wait(base::SystemClock().steady_now() + 24h, stop.get_token());
  EXPECT_TRUE(stop.stop_requested());
}

TEST(SystemWaiterTest, Wait_LastsUntilTheDeadline) {
  SystemWaiter waiter;
  const auto until = base::SystemClock().steady_now() + 2ms;
  waiter.wait(until, {});
  EXPECT_GE(base::SystemClock().steady_now(), until);
}

}  // namespace
}  // namespace spoor::scanner
