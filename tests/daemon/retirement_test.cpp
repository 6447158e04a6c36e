// A node that retires, with members that say what the test lets them say.
#include "daemon/membership/retirement.h"

#include <gmock/gmock.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/stepped_node.h"
#include "tests/fakes/answering_transport.h"
#include "tests/fakes/fake_cluster.h"

namespace spoor::daemon {
namespace {

using fakes::FakeCluster;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using tracker::CycleId;
using tracker::Membership;

class RetirementTest : public SteppedNode {
 protected:
  RetirementTest() {
    for (const char* host : {"a", "b"}) cluster_.add(host);
    for (const char* path : {"bucket/one", "bucket/two", "bucket/three"}) {
      mark(path);
      persistence_->tracker().advance({persistence_->tracker().status().current.value + 1});
    }
    make();
    introduction_->open_alone();
  }

  void make() {
    introduction_.emplace(context_, pool_, *persistence_, "node", std::chrono::hours(12), clock_, timers_);
    peers_.emplace(context_, pool_,
                   PeerWatch::Options{.cluster = "c",
                                      .static_endpoints = FakeCluster::endpoints(members_),
                                      .make_transport = fakes::transport_maker(cluster_, cluster_)},
                   *introduction_, clock_, timers_);
    retirement_.emplace(pool_,
                        Retirement::Options{.node = {"c", "node"},
                                            .rules_digest = 5,
                                            .own_unread = [this] { return own_unread_; },
                                            .make_transport = fakes::transport_maker(cluster_, cluster_)},
                        *persistence_, *introduction_, *peers_, nullptr);
  }

  // As a process that is killed.
  void restart() {
    retirement_.reset();
    peers_.reset();
    introduction_.reset();
    persistence_.reset();
    persistence_ = start_persistence();
    make();
  }

  base::Result<Retirement::Done> retire() { return **run(retirement_->retire()); }

  std::string error_of(const base::Result<Retirement::Done>& done) {
    return done ? "it has retired" : done.error().message;
  }

  static bool holds(const peer::AdoptQuery& offer, std::string_view path) {
    return offer.frame.answer.marks.may_contain(path, tracker::hash_path(path));
  }

  std::size_t offers(const std::string& host) { return cluster_[host].offered.size(); }

  FakeCluster cluster_{clock_};
  std::vector<std::string> members_{"a", "b"};
  base::Result<peer::UnreadFrom> own_unread_ = peer::UnreadFrom();
  std::optional<Introduction> introduction_;
  std::optional<PeerWatch> peers_;
  std::optional<Retirement> retirement_;
};

TEST_F(RetirementTest, OneMember_AdoptsFromTheLowestCycleThatAnyScanNeeds) {
  cluster_["a"].unread = peer::UnreadFrom(CycleId{3});
  cluster_["b"].unread = peer::UnreadFrom(CycleId{2});
  const auto done = retire();
  ASSERT_TRUE(done) << error_of(done);
  EXPECT_EQ(done->adopted_by, "a");
  EXPECT_EQ(done->adopted_from, CycleId{2});
  EXPECT_THAT(done->silent, IsEmpty());
  EXPECT_EQ(persistence_->membership(), Membership::retired);
  EXPECT_FALSE(introduction_->is_open());
  EXPECT_FALSE(introduction_->self()) << "a record of a later run means that it is a member again";
  ASSERT_EQ(offers("a"), 1U);
  EXPECT_EQ(offers("b"), 0U);
  const peer::AdoptQuery& offer = cluster_["a"].offered[0];
  EXPECT_EQ(offer.retired, (tracker::Retired{tracker::last_run_of(persistence_->runs()), {2}}));
  EXPECT_EQ(offer.frame.sender, (tracker::NodeIdentity{"c", "node"}));
  EXPECT_EQ(offer.frame.answer.instance, introduction_->id().instance);
  EXPECT_EQ(offer.frame.rules_digest, 5U);
  EXPECT_FALSE(holds(offer, "bucket/one"));
  EXPECT_TRUE(holds(offer, "bucket/two"));
  EXPECT_TRUE(holds(offer, "bucket/three"));
}

TEST_F(RetirementTest, OwnScan_CountsToo) {
  own_unread_ = peer::UnreadFrom(CycleId{1});
  cluster_["a"].unread = cluster_["b"].unread = peer::UnreadFrom(CycleId{4});
  ASSERT_TRUE(retire());
  EXPECT_TRUE(holds(cluster_["a"].offered[0], "bucket/one"));
}

TEST_F(RetirementTest, NoScanOfAnyNode_HandsOnTheCurrentCycle) {
  mark("bucket/last");
  const auto done = retire();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->adopted_from, CycleId{4});
  EXPECT_FALSE(holds(cluster_["a"].offered[0], "bucket/three"));
  EXPECT_TRUE(holds(cluster_["a"].offered[0], "bucket/last"));
}

TEST_F(RetirementTest, MemberSilent_IsNamed) {
  cluster_["a"].unread = base::Error(std::make_error_code(std::errc::timed_out), "no answer");
  const auto done = retire();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->adopted_by, "b");
  EXPECT_THAT(done->silent, ElementsAre(HasSubstr("http://a:7420")));
}

TEST_F(RetirementTest, NoMember_StaysOne) {
  for (const char* host : {"a", "b"}) cluster_[host].is_down = true;
  EXPECT_THAT(error_of(retire()), AllOf(HasSubstr("no other member responds: "), HasSubstr("http://a:7420: "),
                                        HasSubstr("http://b:7420: ")));
  EXPECT_TRUE(introduction_->is_open());
  members_.clear();
  make();
  EXPECT_THAT(error_of(retire()), HasSubstr("there is no other member"));
  EXPECT_EQ(persistence_->membership(), Membership::member);
}

TEST_F(RetirementTest, AllRefuse_StaysAMember) {
  cluster_["a"].adopt_status = cluster_["b"].adopt_status = 409;
  EXPECT_THAT(error_of(retire()), HasSubstr("no member adopts the marks: http://a:7420: it does not adopt"));
  EXPECT_EQ(offers("b"), 1U);
  EXPECT_TRUE(introduction_->is_open());
  restart();
  EXPECT_EQ(persistence_->membership(), Membership::member);
}

TEST_F(RetirementTest, OneRefuses_TheNextAdopts) {
  cluster_["a"].adopt_status = 409;
  const auto done = retire();
  ASSERT_TRUE(done);
  EXPECT_EQ(done->adopted_by, "b");
}

TEST_F(RetirementTest, TooManyMarks_BecomeAMarkOnTheRoot) {
  cluster_["a"].unread = peer::UnreadFrom(CycleId{1});
  cluster_["a"].adopt_status = 413;
  ASSERT_TRUE(retire());
  ASSERT_EQ(offers("a"), 2U);
  EXPECT_FALSE(cluster_["a"].offered[0].frame.answer.marks.tree_marks().covers(""));
  EXPECT_TRUE(cluster_["a"].offered[1].frame.answer.marks.tree_marks().covers(""));
  EXPECT_TRUE(cluster_["a"].offered[1].frame.answer.marks.filters().empty());
}

class UncertainRetirementTest : public RetirementTest, public testing::WithParamInterface<unsigned> {};
INSTANTIATE_TEST_SUITE_P(Status, UncertainRetirementTest, testing::Values(0, 204, 503));

// A member that may have the marks may have been read by scans, which expect this node no longer. One that
// sends 204 may be any server.
TEST_P(UncertainRetirementTest, AcknowledgesNothingUntilItIsRepeated) {
  const std::uint64_t runs = persistence_->runs();
  cluster_["a"].adopt_status = GetParam();
  cluster_["b"].adopt_status = 409;
  EXPECT_THAT(error_of(retire()), HasSubstr("retire this node again"));
  EXPECT_FALSE(introduction_->is_open());
  restart();
  introduction_->open_alone();
  EXPECT_FALSE(introduction_->is_open()) << "also after a restart";
  EXPECT_EQ(persistence_->membership(), Membership::retiring);
  EXPECT_FALSE(introduction_->self());
  EXPECT_EQ(persistence_->runs(), runs);
  // A refusal by all does not make it a member either: one may have the marks of before.
  cluster_["a"].adopt_status = 409;
  EXPECT_FALSE(retire());
  EXPECT_FALSE(introduction_->is_open());
  cluster_["b"].adopt_status = 200;
  const auto done = retire();
  ASSERT_TRUE(done) << error_of(done);
  EXPECT_EQ(done->adopted_by, "b");
  EXPECT_EQ(persistence_->membership(), Membership::retired);
  EXPECT_EQ(retire()->adopted_by, "") << "it has retired already";
}

TEST_F(RetirementTest, OwnScansNotReadable_AreNamed) {
  own_unread_ = base::Error(std::make_error_code(std::errc::io_error), "scan.db can't be read");
  EXPECT_THAT(retire()->silent, ElementsAre("this node: scan.db can't be read"));
}

TEST_F(RetirementTest, NotStored_StaysAMember) {
  files_.fail_below("/data", EIO);
  EXPECT_THAT(error_of(retire()), HasSubstr("that this node retires is not stored"));
  EXPECT_TRUE(introduction_->is_open());
  EXPECT_EQ(offers("a"), 0U);
}

// A mark made before the copy is in it; one that is not acknowledged by then is refused.
TEST_F(RetirementTest, MarkInFlight_IsRefused) {
  std::optional<bool> was_open;
  cluster_["a"].before_answer = [&, number = 0]() mutable {
    if (++number == 2) was_open = introduction_->is_open();  // the offer
  };
  mark("bucket/in-flight");
  ASSERT_TRUE(retire());
  EXPECT_EQ(was_open, false);
  EXPECT_TRUE(holds(cluster_["a"].offered[0], "bucket/in-flight"));
}

TEST_F(RetirementTest, Stopped_OffersNothing) {
  retirement_->stop();
  EXPECT_FALSE(retire());
  EXPECT_EQ(offers("a"), 0U);
}

}  // namespace
}  // namespace spoor::daemon
