// Peers that a source of members knows by name, and gaps that no peer tells of.
#include <gmock/gmock.h>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using fakes::FakeCluster;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ExpectedPeerTest : public testing::Test {
 protected:
  ExpectedPeerTest() {
    for (const char* host : {"a", "b"}) cluster_.add(host);
    options_.cluster = "c";
    scan();
  }

  Gathered scan() {
    clock_.advance(std::chrono::hours(1));
    options_.members.endpoints = FakeCluster::endpoints(hosts_);
    auto gathered = gather(cluster_, cursors_, options_);
    cursors_ = gathered.cursors;
    return gathered;
  }

  void expect(const std::string& name, const std::string& host, const tracker::InstanceId& instance = {}) {
    options_.members.expected.push_back({name, FakeCluster::endpoint(host), instance});
  }

  tracker::InstanceId instance_of(const std::string& host) {
    return cluster_[host].tracker->state().instance;
  }

  static std::vector<std::string> failed(const Gathered& gathered) {
    std::vector<std::string> names;
    for (const auto& peer : gathered.peers) {
      if (!peer.ok) names.push_back(peer.name);
    }
    return names;
  }

  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> hosts_{"a", "b"};
  tracker::Cursors cursors_;
  GatherOptions options_;
};

TEST_F(ExpectedPeerTest, ExpectedNodeRespondsElsewhere_ScanIsComplete) {
  expect("a", "a");
  expect("b", "somewhere-else");
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
}

// As an address in Kubernetes that was given to another node.
TEST_F(ExpectedPeerTest, OtherNodeAtExpectedAddress_ScanIsPartial) {
  expect("b", "b");
  expect("ghost", "b");
  expect("ghost", "a");
  const auto gathered = scan();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(failed(gathered), ElementsAre("ghost")) << "once, whatever addresses it had";
  EXPECT_THAT(gathered.gaps, IsEmpty()) << "it may be back";
  options_.members.expected.clear();
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'ghost' is no longer among the peers")));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(ExpectedPeerTest, SilentExpectedNode_IsReportedOnce) {
  hosts_.push_back("down");
  expect("ghost", "down");
  EXPECT_THAT(failed(scan()), ElementsAre("http://down:7420"));
  hosts_.pop_back();
  EXPECT_THAT(failed(scan()), ElementsAre("ghost")) << "nobody was asked there";
}

// It may have lost its memory since it was first expected, with marks that nobody read.
TEST_F(ExpectedPeerTest, MissedExpectedNode_IsNotTrustedAsNew) {
  options_.trust_new_peers = true;
  expect("d", "b");
  EXPECT_FALSE(scan().complete());
  cluster_.add("d");
  hosts_.push_back("d");
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'d' was never read before")));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

// It lost what it was told before it could be read, and has not registered anew yet.
TEST_F(ExpectedPeerTest, OtherInstanceThanExpected_IsNotTrustedAsNew) {
  options_.trust_new_peers = true;
  cluster_.add("d");
  hosts_.push_back("d");
  expect("d", "d", tracker::InstanceId::random());
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("'d' was never read before")));
  cluster_.add("e");
  hosts_.push_back("e");
  expect("e", "e", instance_of("e"));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(ExpectedPeerTest, MissedNodeReadBefore_KeepsItsCursor) {
  const auto cursor = cursors_.at("b");
  expect("b", "b");
  cluster_.remove("b");
  cluster_.alias("a", "b");
  EXPECT_THAT(failed(scan()), ElementsAre("b"));
  EXPECT_EQ(cursors_.at("b"), cursor);
}

TEST_F(ExpectedPeerTest, DuplicateNodeNameElsewhere_IsNotTheExpectedNode) {
  const auto other = tracker::InstanceId::random();
  expect("b", "b", instance_of("b"));
  expect("b", "a", other);
  EXPECT_THAT(failed(scan()), ElementsAre("b"));
  options_.members.expected.pop_back();
  expect("b", "b", other);
  EXPECT_TRUE(scan().complete()) << "it answers in its own location, and tells by itself what it lost";
  hosts_.push_back("down");
  expect("b", "down", other);
  EXPECT_THAT(failed(scan()), ElementsAre("http://down:7420"));
  hosts_.pop_back();
  options_.members.expected.clear();
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'http://down:7420' is no longer among the peers")));
}

// A pod that was seen at an address where it did not live long, and then lives at another one.
TEST_F(ExpectedPeerTest, SilentAddressOfKnownNode_IsRememberedByNodeName) {
  const auto instance = instance_of("b");
  cluster_.alias("b", "new");
  hosts_ = {"a", "down"};
  expect("b", "down", instance);
  EXPECT_FALSE(scan().complete());
  hosts_ = {"a", "new"};
  options_.members.expected.clear();
  expect("b", "new", instance);
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
}

TEST_F(ExpectedPeerTest, KnownGap_IsAGap) {
  options_.members.gaps = {"somebody was there"};
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, ElementsAre("somebody was there"));
  EXPECT_TRUE(gathered.marks.may_contain("anything", tracker::hash_path("anything")));
}

}  // namespace
}  // namespace spoor::peer
