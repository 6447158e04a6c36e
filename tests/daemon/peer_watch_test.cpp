#include "daemon/membership/peer_watch.h"

#include <gmock/gmock.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <latch>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/node.h"
#include "tests/daemon/stepped_node.h"
#include "tests/fakes/answering_transport.h"
#include "tests/fakes/fake_cluster.h"

namespace spoor::daemon {
namespace {

using fakes::FakeCluster;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

// A DNS whose answers the test sets.
class FakeSource final : public peer::MemberSource {
 public:
  std::vector<peer::SourceListing> listings;

  std::vector<peer::SourceListing> list() override { return listings; }

  void set(const std::string& name, const std::vector<std::string>& hosts, const std::string& problem = {}) {
    listings = {{.source = "dns " + name, .listed = {}}};
    listings[0].problem = problem;
    for (const std::string& host : hosts) {
      listings[0].listed.push_back(FakeCluster::endpoint(host).to_string());
    }
  }
};

class PeerWatchTest : public SteppedNode {
 protected:
  PeerWatchTest() {
    for (const char* host : {"a", "b", "c"}) cluster_.add(host);
  }

  void TearDown() override {
    watch_.stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  void start() {
    watch_.start();
    settle();
  }

  // URL and state of each.
  std::vector<std::string> states() const {
    std::vector<std::string> all;
    for (const PeerState& peer : watch_.states()) all.push_back(peer.url + ' ' + peer.state);
    return all;
  }

  // Name, number of members and error of each DNS name.
  std::vector<std::string> dns() const {
    std::vector<std::string> all;
    for (const DnsState& name : watch_.dns_states()) {
      all.push_back(name.source + ' ' + std::to_string(name.members) + ' ' + name.error);
    }
    return all;
  }

  std::shared_ptr<FakeSource> read_dns(const std::string& name, const std::vector<std::string>& hosts) {
    auto source = std::make_shared<FakeSource>();
    source->set(name, hosts);
    watch_.set_dns(source);
    return source;
  }

  // While the host responds in the first round.
  void during_first_round(const std::string& host, const std::function<void()>& action) {
    std::latch begun(1);
    std::latch released(1);
    cluster_[host].before_answer = [&, is_first = true]() mutable {
      if (!std::exchange(is_first, false)) return;
      begun.count_down();
      released.wait();
    };
    watch_.start();
    context_.poll();
    begun.wait();
    action();
    released.count_down();
    settle();
    cluster_[host].before_answer = [] {};
  }

  std::size_t asked(const std::string& host) { return cluster_[host].asked.size(); }

  bool is_open() const { return introduction_.is_open(); }

  static constexpr std::uint64_t own_run = 7;

  FakeCluster cluster_{clock_};
  static constexpr std::chrono::hours known_for{12};
  Introduction introduction_{context_, pool_,  *persistence_, "node", std::chrono::nanoseconds::max(),
                             clock_,   timers_};
  PeerWatch watch_{context_,
                   pool_,
                   {.cluster = "c",
                    .run = own_run,
                    .static_endpoints = FakeCluster::endpoints({"a", "b"}),
                    .make_transport = fakes::transport_maker(cluster_, cluster_)},
                   introduction_,
                   clock_,
                   timers_};
};

// It may have handed its records on already.
TEST_F(PeerWatchTest, PeersThatRetire_DoNotCountAsRecords) {
  for (const char* host : {"a", "b"}) cluster_[host].is_closed = true;
  start();
  EXPECT_FALSE(is_open());
  cluster_["b"].is_closed = false;
  pass(seconds(30));
  EXPECT_TRUE(is_open());
}

TEST_F(PeerWatchTest, PeersUp_ArePolledEveryThirtySeconds) {
  EXPECT_THAT(states(), ElementsAre("http://a:7420 unknown", "http://b:7420 unknown"));
  start();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  EXPECT_EQ(watch_.states()[0].name, "a");
  EXPECT_EQ(watch_.states()[0].last_seen, clock_.wall_now());
  EXPECT_EQ(asked("a"), 1U);
  pass(seconds(30) - milliseconds(1));
  EXPECT_EQ(asked("a"), 1U);
  pass(milliseconds(1));
  EXPECT_EQ(asked("a"), 2U);
}

TEST_F(PeerWatchTest, PeerDown_IsPolledWithBackoffUntilUp) {
  cluster_["b"].is_down = true;
  start();
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

TEST_F(PeerWatchTest, PeerWentDown_KeepsItsNameAndLastSeen) {
  start();
  const auto seen = clock_.wall_now();
  cluster_["b"].is_down = true;
  pass(seconds(30));
  EXPECT_EQ(watch_.states()[1].state, "down");
  EXPECT_EQ(watch_.states()[1].name, "b");
  EXPECT_EQ(watch_.states()[1].last_seen, seen);
}

TEST_F(PeerWatchTest, NewMember_IsPolledAtOnceAndAMemberThatIsAPeerOnce) {
  start();
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
TEST_F(PeerWatchTest, NewMemberDuringARound_IsPolledRightAfterIt) {
  during_first_round("a", [&] {
    watch_.set_members(FakeCluster::endpoints({"c"}));
    watch_.set_peers(FakeCluster::endpoints({"a"}));
  });
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://c:7420 up"));
  EXPECT_EQ(asked("c"), 1U);
  EXPECT_EQ(asked("b"), 1U) << "in the first round only";
}

TEST_F(PeerWatchTest, DnsMembers_AppearAndDisappear) {
  const auto source = read_dns("x:7420", {"b", "c"});
  start();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up", "http://c:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("x:7420 2 "));
  EXPECT_EQ(asked("b"), 1U) << "a static peer, too: polled once";
  source->set("x:7420", {"b"});
  pass(seconds(30));
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("x:7420 1 "));
}

TEST_F(PeerWatchTest, DnsFails_LastKnownMembersStayAndTheErrorIsReported) {
  const auto source = read_dns("x:7420", {"c"});
  start();
  source->set("x:7420", {}, "no answer in time");
  pass(seconds(30));
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up", "http://c:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("x:7420 1 no answer in time"));
  EXPECT_THAT(cluster_members(watch_, nullptr).unknown_sources, ElementsAre("dns x:7420: no answer in time"));
  EXPECT_EQ(asked("c"), 2U);
  EXPECT_THAT(timers_.waiting(), ElementsAre(milliseconds(500))) << "as for a peer that is down";
  source->set("x:7420", {});
  pass(milliseconds(500));
  EXPECT_EQ(asked("c"), 3U) << "also while the name has no address";
  source->set("x:7420", {"c"});
  pass(seconds(30));
  EXPECT_THAT(dns(), ElementsAre("x:7420 1 "));
  EXPECT_THAT(timers_.waiting(), ElementsAre(seconds(30)));
}

TEST_F(PeerWatchTest, DnsListsThisDaemon_IsNotItsOwnPeer) {
  cluster_["c"].run = own_run;
  const auto source = read_dns("x:7420", {"b", "c"});
  start();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("x:7420 2 "));
}

TEST_F(PeerWatchTest, OtherDnsNamesDuringARound_AnswersForTheOldOnesAreIgnored) {
  const auto old = read_dns("old:7420", {"b"});
  watch_.set_peers({});
  during_first_round("b", [&] { read_dns("new:7420", {"c"}); });
  EXPECT_THAT(states(), ElementsAre("http://c:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("new:7420 1 "));
}

TEST_F(PeerWatchTest, DnsNamesRemoved_TheirMembersGo) {
  const auto source = read_dns("x:7420", {"c"});
  start();
  watch_.set_dns(nullptr);
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://b:7420 up"));
  EXPECT_THAT(dns(), IsEmpty());
}

// As at a reload that changes no DNS name while the DNS is down.
TEST_F(PeerWatchTest, StaticPeersReplaced_DnsMembersStay) {
  const auto source = read_dns("x:7420", {"c"});
  start();
  source->set("x:7420", {}, "no answer in time");
  watch_.set_peers(FakeCluster::endpoints({"a"}));
  settle();
  EXPECT_THAT(states(), ElementsAre("http://a:7420 up", "http://c:7420 up"));
  EXPECT_THAT(dns(), ElementsAre("x:7420 1 no answer in time"));
}

// --- introductions ---

TEST_F(PeerWatchTest, EachRequest_IntroducesThisDaemonAndThePeersAreRecorded) {
  watch_.start();
  EXPECT_FALSE(is_open());
  settle();
  EXPECT_EQ(cluster_["a"].met, introduction_.self());
  EXPECT_THAT(recorded(), UnorderedElementsAre(cluster_.id("a"), cluster_.id("b")));
  EXPECT_TRUE(is_open());
}

TEST_F(PeerWatchTest, NoPeerResponds_IsNotIntroducedUntilOneDoes) {
  cluster_["a"].is_down = true;
  cluster_["b"].garbage = "hello";
  start();
  EXPECT_FALSE(is_open());
  cluster_["a"].is_down = false;
  pass(milliseconds(500));
  EXPECT_TRUE(is_open());
}

TEST_F(PeerWatchTest, PeerOfAnotherCluster_RecordsNothing) {
  for (const char* host : {"a", "b"}) cluster_[host].identity.cluster = "other";
  start();
  EXPECT_FALSE(is_open());
  EXPECT_THAT(recorded(), IsEmpty());
}

TEST_F(PeerWatchTest, OnlyThisDaemonIsListed_IsAlone) {
  watch_.set_peers({});
  cluster_["c"].run = own_run;
  const auto source = read_dns("x:7420", {"c"});
  start();
  EXPECT_TRUE(is_open());
  EXPECT_THAT(recorded(), IsEmpty());
}

TEST_F(PeerWatchTest, DnsFailsOrHasNoAddress_IsNotAlone) {
  watch_.set_peers({});
  cluster_["c"].run = own_run;
  const auto source = read_dns("x:7420", {});
  source->set("x:7420", {"c"}, "no answer in time");
  start();
  EXPECT_FALSE(is_open());
  source->set("x:7420", {});
  pass(milliseconds(500));
  EXPECT_FALSE(is_open());
  source->set("x:7420", {"c"});
  pass(std::chrono::minutes(1));
  EXPECT_TRUE(is_open());
}

TEST_F(PeerWatchTest, AloneUntilPeersAreSet_WaitsForOneOfThem) {
  watch_.set_peers({});
  introduction_.open_alone();
  EXPECT_TRUE(is_open());
  cluster_["a"].is_down = true;
  watch_.set_peers(FakeCluster::endpoints({"a"}));
  EXPECT_FALSE(is_open());
  start();
  EXPECT_FALSE(is_open());
  cluster_["a"].is_down = false;
  pass(milliseconds(500));
  EXPECT_TRUE(is_open());
  watch_.set_peers(FakeCluster::endpoints({"b"}));
  EXPECT_TRUE(is_open()) << "it is recorded";
}

// Scans of others may not expect it any more, and would not ask for its marks.
TEST_F(PeerWatchTest, PeersDownForLong_MarksAreAcknowledgedOnlyWhileTheDnsListsThisDaemon) {
  introduction_.set_known_for(known_for);
  watch_.set_peers({});
  const auto source = read_dns("x:7420", {"a", "c"});
  cluster_["c"].run = own_run;
  start();
  cluster_["a"].is_down = true;
  const auto pass_hours = [&](int hours) {
    for (int minute = 0; minute < 60 * hours; ++minute) pass(std::chrono::minutes(1));
  };
  pass_hours(24);
  EXPECT_TRUE(is_open()) << "scans of others are partial: they find its address there";
  source->set("x:7420", {"a"});
  pass_hours(11);
  EXPECT_TRUE(is_open());
  pass_hours(2);
  EXPECT_FALSE(is_open());
  source->set("x:7420", {}, "no answer in time");
  pass(seconds(30));
  EXPECT_FALSE(is_open());
  source->set("x:7420", {"a"});
  cluster_["a"].is_down = false;
  pass(seconds(30));
  EXPECT_TRUE(is_open());
}

TEST_F(PeerWatchTest, CutOffWithOneOther_IsNotKnownByThatOne) {
  introduction_.set_known_for(known_for);
  watch_.set_peers({});
  const auto source = read_dns("x:7420", {"a", "b"});
  start();
  EXPECT_TRUE(is_open()) << "all have recorded it";
  cluster_["a"].is_down = true;
  pass(known_for);
  pass(seconds(30));
  EXPECT_FALSE(is_open());
}

TEST_F(PeerWatchTest, PeersReplacedDuringARoundWithoutAny_IsNotAlone) {
  watch_.set_peers({});
  cluster_["a"].is_down = true;
  const auto source = read_dns("x:7420", {"c"});
  cluster_["c"].run = own_run;
  during_first_round("c", [&] { watch_.set_peers(FakeCluster::endpoints({"a"})); });
  EXPECT_FALSE(is_open());
}

// etcd does not respond when the daemon starts, and lists no other member later.
TEST_F(PeerWatchTest, MembersInEtcdNotRead_IsNotAloneUntilTheyAre) {
  PeerWatch watch(context_, pool_,
                  {.cluster = "c",
                   .run = own_run,
                   .has_etcd = true,
                   .make_transport = fakes::transport_maker(cluster_, cluster_)},
                  introduction_, clock_, timers_);
  watch.start();
  settle();
  EXPECT_FALSE(is_open());
  watch.set_members({});
  settle();
  EXPECT_TRUE(is_open());
  watch.stop();
  settle();
}

TEST_F(PeerWatchTest, NewInstanceOfAPeerIntroducesItself_AllPeersArePolledAtOnce) {
  start();
  watch_.meet(cluster_.id("a"));
  settle();
  EXPECT_EQ(asked("a"), 1U) << "it is known";
  watch_.meet(introduction_.id());  // its own address is among those of a DNS name
  settle();
  EXPECT_EQ(asked("a"), 1U);
  cluster_.start_anew(cluster_["a"]);
  watch_.meet(cluster_.id("a"));
  settle();
  EXPECT_EQ(asked("a"), 2U);
  EXPECT_TRUE(recorded().contains(cluster_.id("a")));
}

// Of three nodes of which each has the next one as its only peer, each would make the next one poll.
TEST_F(PeerWatchTest, DaemonThatIsNoPeerIntroducesItself_IsPolledForOncePerRound) {
  start();
  for (int times = 0; times < 3; ++times) {
    watch_.meet({"stranger", cluster_.id("c").instance});
    settle();
  }
  EXPECT_EQ(asked("a"), 2U);
  pass(seconds(30));
  EXPECT_EQ(asked("a"), 3U);
  watch_.meet({"stranger", cluster_.id("c").instance});
  settle();
  EXPECT_EQ(asked("a"), 4U);
}

TEST_F(PeerWatchTest, Stopped_SendsNoMoreRequests) {
  start();
  watch_.stop();
  settle();
  pass(seconds(60));
  EXPECT_EQ(asked("a"), 1U);
}

}  // namespace
}  // namespace spoor::daemon
