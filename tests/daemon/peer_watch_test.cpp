#include "daemon/peer_watch.h"

#include <gmock/gmock.h>

#include <chrono>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/lent_transport.h"
#include "tests/fakes/manual_timers.h"

namespace spoor::daemon {
namespace {

using fakes::FakeCluster;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

class PeerWatchTest : public testing::Test {
 protected:
  PeerWatchTest() {
    for (const char* host : {"a", "b", "c"}) cluster_.add(host);
  }

  void TearDown() override {
    watch_.stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  void settle() { fakes::settle(context_, pool_); }
  void pass(std::chrono::nanoseconds time) {
    timers_.advance(time);
    settle();
  }

  // URL and state of each.
  std::vector<std::string> states() const {
    std::vector<std::string> all;
    for (const PeerState& peer : watch_.states()) all.push_back(peer.url + ' ' + peer.state);
    return all;
  }

  std::size_t asked(const std::string& host) { return cluster_[host].asked.size(); }

  fakes::ManualClock clock_;
  boost::asio::io_context context_{1};
  boost::asio::thread_pool pool_{1};
  fakes::ManualTimers timers_{context_, clock_};
  FakeCluster cluster_{clock_};
  PeerWatch watch_{context_, pool_,  "c",     FakeCluster::endpoints({"a", "b"}),
                   {},       clock_, timers_, fakes::LentTransport::maker(cluster_, cluster_)};
};

TEST_F(PeerWatchTest, BeforeTheFirstAnswer_PeersAreUnknown) {
  EXPECT_THAT(states(), ElementsAre("http://a:7420 unknown", "http://b:7420 unknown"));
}

TEST_F(PeerWatchTest, AllUp_AreAskedEveryThirtySeconds) {
  watch_.start();
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  EXPECT_EQ(watch_.states()[0].name, "a");
  EXPECT_EQ(watch_.states()[0].last_seen, clock_.wall_now());
  EXPECT_EQ(asked("a"), 1U);
  pass(seconds(30) - milliseconds(1));
  EXPECT_EQ(asked("a"), 1U);
  pass(milliseconds(1));
  EXPECT_EQ(asked("a"), 2U);
}

TEST_F(PeerWatchTest, OneDown_IsAskedWithGrowingPausesUntilItIsUp) {
  cluster_["b"].is_down = true;
  watch_.start();
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 down"));
  EXPECT_NE(watch_.states()[1].error, "");
  EXPECT_FALSE(watch_.states()[1].last_seen);
  for (const int pause : {500, 1'000, 2'000, 4'000, 8'000, 16'000, 30'000, 30'000}) {
    EXPECT_THAT(timers_.waiting(), ElementsAre(milliseconds(pause)));
    pass(milliseconds(pause));
  }
  cluster_["b"].is_down = false;
  pass(seconds(30));
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  cluster_["b"].is_down = true;
  pass(seconds(30));
  EXPECT_THAT(timers_.waiting(), ElementsAre(milliseconds(500))) << "the next outage begins anew";
}

TEST_F(PeerWatchTest, PeerThatWentDown_KeepsItsNameAndWhenItWasSeen) {
  watch_.start();
  settle();
  const auto seen = clock_.wall_now();
  cluster_["b"].is_down = true;
  pass(seconds(30));
  EXPECT_EQ(watch_.states()[1].state, "down");
  EXPECT_EQ(watch_.states()[1].name, "b");
  EXPECT_EQ(watch_.states()[1].last_seen, seen);
}

TEST_F(PeerWatchTest, NewMember_IsAskedAtOnceAndOneThatIsAPeerOnce) {
  watch_.start();
  settle();
  watch_.set_members(FakeCluster::endpoints({"b", "c"}));
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up", "http://c:7420 up"));
  EXPECT_EQ(asked("b"), 2U);
  watch_.set_members(FakeCluster::endpoints({"b", "c"}));
  settle();
  EXPECT_EQ(asked("b"), 2U) << "nothing is new";
  watch_.set_members({});
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
}

// What comes while the others are being asked is not to wait for the next round.
TEST_F(PeerWatchTest, NewMemberDuringARound_IsAskedRightAfterIt) {
  std::latch begun(1);
  std::latch released(1);
  cluster_["a"].before_answer = [&, is_first = true]() mutable {
    if (!std::exchange(is_first, false)) return;
    begun.count_down();
    released.wait();
  };
  watch_.start();
  context_.poll();
  begun.wait();
  watch_.set_members(FakeCluster::endpoints({"c"}));
  watch_.set_peers(FakeCluster::endpoints({"a"}));
  released.count_down();
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://c:7420 up"));
  EXPECT_EQ(asked("c"), 1U);
  EXPECT_EQ(asked("b"), 1U) << "in the first round only";
}

TEST_F(PeerWatchTest, Stopped_AsksNoMore) {
  watch_.start();
  settle();
  watch_.stop();
  settle();
  pass(seconds(60));
  EXPECT_EQ(asked("a"), 1U);
}

}  // namespace
}  // namespace spoor::daemon
