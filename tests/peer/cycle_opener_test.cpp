#include "peer/cycle_opener.h"

#include <gmock/gmock.h>

#include "tests/fakes/fake_etcd.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class CycleOpenerTest : public testing::Test {
 protected:
  CycleOpener opener(const std::string& node) {
    return CycleOpener(client_, clock_,
                       {.place = {"spoor", "test"},
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
  CycleOpener a_ = opener("a");
  CycleOpener b_ = opener("b");
  const std::string key_ = "spoor/test/opener";
};

TEST_F(CycleOpenerTest, OneHasItTheOtherWaitsAndThenJoins) {
  EXPECT_TRUE(a_.take_turn());
  EXPECT_EQ(etcd_.keys.at(key_).value, "a");
  EXPECT_NE(etcd_.keys.at(key_).lease, 0);
  EXPECT_TRUE(pauses_.empty());
  EXPECT_FALSE(b_.take_turn());
  milliseconds waited{};
  for (const milliseconds pause : pauses_) waited += pause;
  EXPECT_EQ(waited, seconds(10));
  EXPECT_GT(*std::ranges::max_element(pauses_), *std::ranges::min_element(pauses_)) << "no two in step";
  EXPECT_EQ(etcd_.keys.at(key_).value, "a");
  EXPECT_EQ(etcd_.leases.size(), 1U) << "nothing is left of who only waited";
}

TEST_F(CycleOpenerTest, WhatIsGivenBackIsTheNextOnes) {
  ASSERT_TRUE(a_.take_turn());
  while_waiting_ = [this] {
    if (pauses_.size() == 3) a_.give_back();
    return true;
  };
  EXPECT_TRUE(b_.take_turn());
  EXPECT_EQ(pauses_.size(), 3U);
  EXPECT_EQ(etcd_.keys.at(key_).value, "b");
  b_.give_back();
  EXPECT_FALSE(etcd_.keys.contains(key_));
  EXPECT_TRUE(etcd_.leases.empty());
}

TEST_F(CycleOpenerTest, AScanThatDiesWithItDoesNotKeepIt) {
  ASSERT_TRUE(a_.take_turn());
  etcd_.expire(etcd_.keys.at(key_).lease);
  EXPECT_TRUE(b_.take_turn());
}

TEST_F(CycleOpenerTest, AWaitLongerThanTheLeaseTakesANewOne) {
  ASSERT_TRUE(a_.take_turn());
  while_waiting_ = [this] {
    for (const auto lease : std::set(etcd_.leases)) etcd_.expire(lease);
    return true;
  };
  EXPECT_TRUE(b_.take_turn());
  EXPECT_EQ(etcd_.keys.at(key_).value, "b");
}

TEST_F(CycleOpenerTest, WithoutEtcdEverybodyMay) {
  etcd_.down = {"etcd"};
  EXPECT_TRUE(a_.take_turn());
  EXPECT_TRUE(b_.take_turn());
  b_.give_back();
  etcd_.down.clear();
  ASSERT_TRUE(a_.take_turn());
  while_waiting_ = [this] {
    etcd_.down = {"etcd"};
    return true;
  };
  EXPECT_TRUE(b_.take_turn()) << "lost while waiting";
}

TEST_F(CycleOpenerTest, AWaitThatIsGivenUpIsOver) {
  ASSERT_TRUE(a_.take_turn());
  while_waiting_ = [] { return false; };
  EXPECT_FALSE(b_.take_turn());
  EXPECT_EQ(pauses_.size(), 1U);
}

}  // namespace
}  // namespace spoor::peer
