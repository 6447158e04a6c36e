#include "daemon/membership/etcd_membership.h"

#include <gmock/gmock.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/daemon/stepped_node.h"
#include "tests/fakes/answering_transport.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/fake_etcd.h"

namespace spoor::daemon {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Le;

const std::string members = "spoor/c/members/";
const std::string alive = "spoor/c/alive/";
const std::string self = "node/http%3A%2F%2Fnode%3A7420";
const std::string other = "b/http%3A%2F%2Fb%3A7420";

class EtcdMembershipTest : public SteppedTest {
 protected:
  EtcdMembershipTest() {
    membership_.emplace(
        context_, pool_, clock_, timers_,
        EtcdMembership::Options{.endpoints = {{"etcd", 2379, {}}},
                                .location = {"spoor", "c"},
                                .self = {"node", "http://node:7420", "instance"},
                                .ttl = ttl,
                                .forget_after = forget_after,
                                .make_transport = fakes::transport_maker(etcd_, cluster_)},
        [this](const auto& confirmed, const std::string& error) {
          EXPECT_EQ(confirmed.has_value(), error.empty());
          if (confirmed) confirmed_.push_back(*confirmed);
        },
        [this](const std::vector<base::Endpoint>& others) {
          told_.emplace_back();
          for (const auto& each : others) told_.back().push_back(each.to_string());
        });
  }

  void TearDown() override { stop(); }

  // At the end of a run, too: the etcd of the test has other things to do, but none by itself.
  void stop() {
    membership_->stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  void register_here() { run(membership_->register_here()); }

  void start() {
    register_here();
    membership_->start();
    settle();
  }

  // Time in which the node looks as often as it does.
  void pass_with_looks(std::chrono::nanoseconds time) {
    for (std::chrono::nanoseconds passed{}; passed < time; passed += ttl / 3) pass(ttl / 3);
  }

  void cut_off() { etcd_.down.insert("etcd"); }
  void reconnect() { etcd_.down.clear(); }

  void enter_other() {
    const std::string value = R"({"node":"b","url":"http://b:7420","instance":"i"})";
    etcd_.put(members + other, value);
    etcd_.put(alive + other, value, 7);
  }

  static constexpr seconds ttl{30};
  static constexpr hours forget_after{24};

  fakes::FakeEtcd etcd_;
  fakes::FakeCluster cluster_{clock_};
  std::vector<tracker::KnownAt> confirmed_;
  std::vector<std::vector<std::string>> told_;
  std::optional<EtcdMembership> membership_;
};

TEST_F(EtcdMembershipTest, FirstAttempt_RegistersTheNode) {
  EXPECT_FALSE(membership_->status().ok);
  EXPECT_THAT(confirmed_, IsEmpty());
  register_here();
  EXPECT_TRUE(membership_->status().ok);
  EXPECT_TRUE(membership_->status().registered);
  EXPECT_EQ(membership_->status().members, 1U);
  ASSERT_EQ(confirmed_.size(), 1U);
  EXPECT_EQ(confirmed_[0], (tracker::KnownAt{clock_.steady_now(), clock_.wall_now()}));
  EXPECT_TRUE(etcd_.keys.contains(members + self));
  EXPECT_TRUE(etcd_.keys.contains(alive + self));
}

TEST_F(EtcdMembershipTest, Registered_PollsBetweenAQuarterAndAThirdOfTheTtl) {
  start();
  for (int look = 0; look < 5; ++look) {
    EXPECT_THAT(timers_.waiting(), ElementsAre(testing::AllOf(Ge(ttl / 4), Le(ttl / 3))));
    const std::size_t asked = etcd_.asked.size();
    pass(ttl / 4 - milliseconds(1));
    EXPECT_EQ(etcd_.asked.size(), asked);
    pass(ttl / 3 - ttl / 4 + milliseconds(1));
    EXPECT_GT(etcd_.asked.size(), asked);
  }
}

TEST_F(EtcdMembershipTest, ExpiredLease_IsGrantedAnewAtTheNextPoll) {
  start();
  etcd_.expire(etcd_.keys.at(alive + self).lease);
  ASSERT_FALSE(etcd_.keys.contains(alive + self));
  pass(ttl / 3);
  EXPECT_TRUE(etcd_.keys.contains(alive + self));
  EXPECT_TRUE(membership_->status().registered);
}

TEST_F(EtcdMembershipTest, EtcdUnreachable_RetriesWithBackoffAndKeepsMembers) {
  start();
  enter_other();
  pass(ttl / 3);
  ASSERT_EQ(membership_->status().members, 2U);
  EXPECT_EQ(confirmed_.size(), 2U);
  cut_off();
  pass(ttl / 3);
  for (const int pause : {500, 1'000, 2'000, 4'000, 8'000, 10'000, 10'000}) {
    EXPECT_FALSE(membership_->status().ok);
    EXPECT_NE(membership_->status().error, "");
    EXPECT_THAT(timers_.waiting(),
                ElementsAre(testing::AllOf(Ge(milliseconds(pause) * 3 / 4), Le(milliseconds(pause)))));
    pass(milliseconds(pause));
  }
  EXPECT_EQ(confirmed_.size(), 2U);
  EXPECT_EQ(membership_->status().members, 2U);
  EXPECT_THAT(told_.back(), ElementsAre("http://b:7420"));
  reconnect();
  pass(ttl / 3);
  EXPECT_TRUE(membership_->status().ok);
  EXPECT_EQ(membership_->status().error, "");
}

TEST_F(EtcdMembershipTest, Members_AreReportedOnlyWhenTheyChange) {
  start();
  const std::size_t before = told_.size();
  pass_with_looks(ttl);
  EXPECT_EQ(told_.size(), before);
  enter_other();
  pass(ttl / 3);
  ASSERT_EQ(told_.size(), before + 1);
  EXPECT_THAT(told_.back(), ElementsAre("http://b:7420"));
  pass_with_looks(ttl);
  EXPECT_EQ(told_.size(), before + 1);
}

TEST_F(EtcdMembershipTest, Stopped_IsNotAliveButStaysAMember) {
  start();
  stop();
  EXPECT_FALSE(etcd_.keys.contains(alive + self));
  EXPECT_TRUE(etcd_.keys.contains(members + self));
  const std::size_t asked = etcd_.asked.size();
  pass(ttl);
  EXPECT_EQ(etcd_.asked.size(), asked);
}

// Until etcd confirms it: others would expect it otherwise.
TEST_F(EtcdMembershipTest, Retired_IsRemovedFromTheMembers) {
  start();
  cut_off();
  membership_->retire();
  settle();
  EXPECT_TRUE(etcd_.keys.contains(members + self));
  reconnect();
  pass(ttl / 3);
  EXPECT_FALSE(etcd_.keys.contains(members + self));
  EXPECT_THAT(timers_.waiting(), IsEmpty()) << "it has ended";
}

TEST_F(EtcdMembershipTest, StopWhileEtcdUnreachable_SendsNoMoreRequests) {
  start();
  cut_off();
  pass(ttl / 3);
  const std::size_t asked = etcd_.asked.size();
  stop();
  EXPECT_EQ(etcd_.asked.size(), asked);
}

}  // namespace
}  // namespace spoor::daemon
