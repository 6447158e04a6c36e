// A scan that reads its own daemon alone.
#include "tests/peer/known_peers_fixture.h"

namespace spoor::peer {
namespace {

class OwnDaemonTest : public KnownPeersTest {
 protected:
  OwnDaemonTest() {
    options_.own_name = "a";
    options_.own_url = "http://a:7420";
  }

  void read_own() {
    options_.own_only = true;
    listed_ = {"a"};
  }
  void read_all() {
    options_.own_only = false;
    listed_ = {"a", "b1"};
  }
};

TEST_F(OwnDaemonTest, OtherPeers_AreNotReadAndCostNothing) {
  read_own();
  cluster_["b"].is_down = true;
  mark("a", "bucket/own");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_THAT(gathered.peers, SizeIs(1));
  EXPECT_TRUE(holds(gathered, "bucket/own"));
  add_stranger("d");
  for (int times = 0; times < 8; ++times) expect_complete(scan());
  EXPECT_EQ(book_.at(cluster_.id("d")).standing, Standing::expected) << "for a scan that reads all again";
}

TEST_F(OwnDaemonTest, ReadingAllAgain_ReadsFromTheirCyclesWithoutAGap) {
  read_own();
  mark("b", "bucket/meanwhile");
  for (int times = 0; times < 8; ++times) EXPECT_FALSE(holds(scan(), "bucket/meanwhile"));
  read_all();
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/meanwhile"));
}

TEST_F(OwnDaemonTest, OwnDaemonSilent_IsPartial) {
  read_own();
  cluster_["a"].is_down = true;
  EXPECT_FALSE(scan().complete());
}

TEST_F(OwnDaemonTest, OwnInstanceReplaced_IsAGap) {
  read_own();
  start_anew("a");
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'a' lost")));
  expect_complete(scan());
}

// The record passes by: it must be known once all are read again.
TEST_F(OwnDaemonTest, MemberThatJoinedMeanwhile_IsExpectedByALaterScanOfAll) {
  read_own();
  const PeerId stranger = add_stranger("d");
  cluster_["d"].is_down = true;
  expect_complete(scan());
  expect_complete(scan());
  read_all();
  EXPECT_THAT(failed(scan()), ElementsAre("d"));
  EXPECT_EQ(book_.at(stranger).standing, Standing::expected);
}

TEST_F(OwnDaemonTest, RetirementThatIsNotCovered_IsAGapOnlyOnceAllAreRead) {
  auto marks = std::make_shared<tracker::MarkSet>();
  marks->add_tree(tracker::retired_mark(cluster_.id("b"), {tracker::last_run_of(1), {1'000}}).path);
  cluster_["a"].tracker->adopt(std::move(marks), {});
  cluster_["b"].is_down = true;
  read_own();
  expect_complete(scan());
  read_all();
  EXPECT_FALSE(scan().complete()) << "its marks are not known";
}

}  // namespace
}  // namespace spoor::peer
