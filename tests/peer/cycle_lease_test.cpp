#include "peer/membership/cycle_lease.h"

#include <gmock/gmock.h>

#include "tests/fakes/fake_etcd.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CycleLeaseTest : public testing::Test {
 protected:
  CycleLease lease(const std::string& node) {
    return CycleLease(client_, clock_,
                      {.location = {"spoor", "test"},
                       .node = node,
                       .wait_max = seconds(10),
                       .seed = 1,
                       .wait = [this](milliseconds pause) {
                         pauses_.push_back(pause);
                         clock_.advance(pause);
                         return while_waiting_();
                       }});
  }

  fakes::FakeEtcd etcd_;
  fakes::ManualClock clock_;
  EtcdClient client_{etcd_, clock_, {{"etcd", 2379, {}}}, {}};
  std::vector<milliseconds> pauses_;
  std::function<bool()> while_waiting_ = [] { return true; };
  CycleLease a_ = lease("a");
  CycleLease b_ = lease("b");
  const std::string key_ = "spoor/test/opener";
};

TEST_F(CycleLeaseTest, CycleLeaseHeld_OtherScanWaitsAndThenJoins) {
  EXPECT_TRUE(a_.acquire());
  EXPECT_EQ(etcd_.keys.at(key_).value, "a");
  EXPECT_NE(etcd_.keys.at(key_).lease, 0);
  EXPECT_TRUE(pauses_.empty());
  EXPECT_FALSE(b_.acquire());
  milliseconds waited{};
  for (const milliseconds pause : pauses_) waited += pause;
  EXPECT_EQ(waited, seconds(10));
  EXPECT_GT(*std::ranges::max_element(pauses_), *std::ranges::min_element(pauses_)) << "no two in step";
  EXPECT_EQ(etcd_.keys.at(key_).value, "a");
  EXPECT_EQ(etcd_.leases.size(), 1U) << "nothing is left of who only waited";
}

TEST_F(CycleLeaseTest, CycleLeaseReleased_WaitingScanAcquiresIt) {
  ASSERT_TRUE(a_.acquire());
  while_waiting_ = [this] {
    if (pauses_.size() == 3) a_.release();
    return true;
  };
  EXPECT_TRUE(b_.acquire());
  EXPECT_EQ(pauses_.size(), 3U);
  EXPECT_EQ(etcd_.keys.at(key_).value, "b");
  b_.release();
  EXPECT_FALSE(etcd_.keys.contains(key_));
  EXPECT_TRUE(etcd_.leases.empty());
}

TEST_F(CycleLeaseTest, CycleLeaseOfDeadScan_ExpiresAndIsAcquired) {
  ASSERT_TRUE(a_.acquire());
  etcd_.expire(etcd_.keys.at(key_).lease);
  EXPECT_TRUE(b_.acquire());
}

TEST_F(CycleLeaseTest, EtcdLeaseExpiresDuringWait_NewLeaseIsGranted) {
  ASSERT_TRUE(a_.acquire());
  while_waiting_ = [this] {
    for (const auto lease : std::set(etcd_.leases)) etcd_.expire(lease);
    return true;
  };
  EXPECT_TRUE(b_.acquire());
  EXPECT_EQ(etcd_.keys.at(key_).value, "b");
}

TEST_F(CycleLeaseTest, EtcdUnreachable_EveryScanMayOpenCycle) {
  etcd_.down = {"etcd"};
  EXPECT_TRUE(a_.acquire());
  EXPECT_TRUE(b_.acquire());
  b_.release();
  etcd_.down.clear();
  ASSERT_TRUE(a_.acquire());
  while_waiting_ = [this] {
    etcd_.down = {"etcd"};
    return true;
  };
  EXPECT_TRUE(b_.acquire()) << "lost while waiting";
}

TEST_F(CycleLeaseTest, WaitForCycleLeaseCancelled_AcquireFails) {
  ASSERT_TRUE(a_.acquire());
  while_waiting_ = [] { return false; };
  EXPECT_FALSE(b_.acquire());
  EXPECT_EQ(pauses_.size(), 1U);
}

}  // namespace
}  // namespace spoor::peer
