// Members whose addresses come and go: nobody's marks may be forgotten with an address, and nobody who only
// moved may cost a full walk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using fakes::FakeCluster;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Node "b" stands at the addresses "b1" and later "b2".
class DepartedTest : public testing::Test {
 protected:
  DepartedTest() {
    for (const char* host : {"a", "b"}) cluster_.add(host);
    cluster_.alias("b", "b1");
    options_.cluster = "c";
    scan();
  }

  Gathered scan() {
    clock_.advance(std::chrono::hours(1));
    options_.members.departed = FakeCluster::endpoints(departed_);
    options_.members.endpoints = FakeCluster::endpoints(listed_);
    auto gathered = gather(cluster_, cursors_, options_);
    cursors_ = gathered.cursors;
    return gathered;
  }

  void move_b() {
    cluster_.remove_alias("b1");
    cluster_.alias("b", "b2");
  }

  static AddressState state_of(const Gathered& gathered, const std::string& host) {
    return gathered.addresses.at(FakeCluster::endpoints({host}).front().to_string());
  }

  void mark(const std::string& host, const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    cluster_[host].tracker->mark({&mark, 1});
  }

  static bool holds(const Gathered& gathered, std::string_view path) {
    return gathered.marks.may_contain(path, tracker::hash_path(path));
  }

  fakes::ManualClock clock_;
  FakeCluster cluster_{clock_};
  std::vector<std::string> listed_{"a", "b1"};
  std::vector<std::string> departed_;
  tracker::Cursors cursors_;
  GatherOptions options_;
};

TEST_F(DepartedTest, DepartedNode_IsStillRead) {
  listed_ = {"a"};
  departed_ = {"b1"};
  mark("b", "bucket/x");
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

TEST_F(DepartedTest, DepartedNodeDown_KeepsItsCursor) {
  mark("b", "bucket/x");
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  departed_ = {"b1"};
  for (int times = 0; times < 3; ++times) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }
  cluster_["b"].is_down = false;
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

// Whether it can be read or not, whoever answers is there.
TEST_F(DepartedTest, AddressStates_ReportRespondingAndSilent) {
  cluster_.alias("b", "b2");
  cluster_.add("down");
  cluster_["down"].is_down = true;
  listed_ = {"a"};
  departed_ = {"b1", "b2", "down"};
  const auto gathered = scan();
  EXPECT_THAT(gathered.addresses, SizeIs(4));
  EXPECT_EQ(state_of(gathered, "a"), AddressState::answered);
  EXPECT_EQ(state_of(gathered, "b1"), AddressState::answered);
  EXPECT_EQ(state_of(gathered, "b2"), AddressState::answered);
  EXPECT_EQ(state_of(gathered, "down"), AddressState::silent);
}

TEST_F(DepartedTest, NodeNeitherListedNorDeparted_IsAGapOnce) {
  listed_ = {"a"};
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'b' is no longer among the peers")));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(DepartedTest, DepartedAddressOfMovedNode_IsIgnored) {
  move_b();
  mark("b", "bucket/x");
  listed_ = {"a", "b2"};
  departed_ = {"b1"};
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(state_of(gathered, "b1"), AddressState::left);
  departed_.clear();
  EXPECT_THAT(scan().gaps, IsEmpty());
}

// Listed still, though its node is elsewhere: somebody else may be there, and take marks.
TEST_F(DepartedTest, ListedAddressOfMovedNode_IsAGapWhenItDeparts) {
  move_b();
  listed_ = {"a", "b1", "b2"};
  EXPECT_FALSE(scan().complete());
  listed_ = {"a", "b2"};
  departed_ = {"b1"};
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("was left before it answered")));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(DepartedTest, ListedAddressOfMovedNode_IsAGapWhenItIsRemoved) {
  move_b();
  listed_ = {"a", "b1", "b2"};
  scan();
  listed_ = {"a", "b2"};
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("b1:7420' is no longer among the peers")));
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(DepartedTest, NodeAtTwoAddresses_OneFailsBriefly_IsNoGap) {
  cluster_.alias("b", "b2");
  listed_ = {"a", "b1", "b2"};
  scan();
  cluster_.remove_alias("b2");
  EXPECT_FALSE(scan().complete());
  cluster_.alias("b", "b2");
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(DepartedTest, OtherNodeAtSilentAddressOfMovedNode_IsAGap) {
  cluster_.add("d");
  listed_ = {"a", "d", "b1"};
  scan();
  move_b();
  listed_ = {"a", "d", "b1", "b2"};
  scan();
  cluster_.alias("d", "b1");
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("b1:7420' never answered before")));
}

TEST_F(DepartedTest, DepartedAddressNeverRead_IsPartialThenAGap) {
  departed_ = {"x"};
  EXPECT_FALSE(scan().complete());
  departed_.clear();
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("x:7420' is no longer among the peers")));
}

TEST_F(DepartedTest, SourceUnknown_NoMemberIsConsideredGone) {
  mark("b", "bucket/x");
  listed_ = {"a"};
  options_.members.unknown_sources = {"dns nodes.example: no answer in time"};
  const auto gathered = scan();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_EQ(gathered.unknown_sources, options_.members.unknown_sources);
  EXPECT_TRUE(std::ranges::all_of(gathered.peers, &PeerOutcome::ok)) << "a source is no peer";
  options_.members.unknown_sources.clear();
  listed_ = {"a", "b1"};
  EXPECT_TRUE(holds(scan(), "bucket/x"));
}

TEST_F(DepartedTest, MayNotOpenCycle_JoinsHighestCycle) {
  const auto before = cluster_["a"].tracker->status().current;
  mark("b", "bucket/x");
  options_.may_open_cycle = false;
  const auto gathered = scan();
  EXPECT_EQ(gathered.cycle, before);
  EXPECT_EQ(cluster_["b"].tracker->status().current, before);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

}  // namespace
}  // namespace spoor::peer
