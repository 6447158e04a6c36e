// What a peer can say that must not keep the others from being scanned: docs/cluster.md.
#include "tests/peer/gather_fixture.h"

namespace spoor::peer {
namespace {

constexpr std::uint64_t far_off = std::uint64_t{1} << 33U;

class GatherBoundsTest : public GatherFixture {
 protected:
  GatherBoundsTest() : GatherFixture({"a", "b", "c"}) { options_.min_cycle_age = {}; }

  // Of another scanner.
  Gathered scan_of(const std::vector<std::string>& hosts, tracker::PeerBook& book) {
    options_.members.endpoints = FakeCluster::endpoints(hosts);
    auto gathered = peer::gather(cluster_, book, options_);
    book = gathered.book;
    return gathered;
  }
};

// One peer that reports a mad cycle would have pinned the whole cluster to it for ever.
TEST_F(GatherBoundsTest, PeerCycleOutOfReach_FailsAndOthersOpenCycles) {
  scan();
  mark("a", "bucket/before");
  mark("c", "bucket/only-c-knows");
  advance("c", far_off);
  const auto kept = book_[cluster_.id("c")];
  for (std::uint64_t cycle = 3; cycle < 6; ++cycle) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(error_of(gathered, "c"), HasSubstr("it claims to be in cycle 8589934592"));
    EXPECT_THAT(gathered.gaps, IsEmpty());
    EXPECT_EQ(gathered.cycle.value, cycle);
    EXPECT_EQ(cycle_of("a"), cycle);
    EXPECT_EQ(cycle_of("b"), cycle);
    EXPECT_EQ(book_[cluster_.id("c")], kept) << "what it holds is still to be read";
    EXPECT_EQ(holds(gathered, "bucket/before"), cycle == 3) << "read once, not in every scan from here on";
  }
}

TEST_F(GatherBoundsTest, PeerCycleOutOfReachInSecondRoundOnly_Fails) {
  scan();
  const auto kept = book_[cluster_.id("c")];
  before_request("c", 2, [this](auto&) { advance("c", far_off); });
  const auto gathered = scan();
  EXPECT_THAT(error_of(gathered, "c"), HasSubstr("it claims to be in cycle 8589934592 all at once"));
  EXPECT_EQ(book_[cluster_.id("c")], kept);
}

TEST_F(GatherBoundsTest, OwnDaemonCycleOutOfReach_Fails) {
  options_.own_url = FakeCluster::endpoint("a").to_string();
  scan();
  advance("a", far_off);
  EXPECT_THAT(error_of(scan(), "a"), HasSubstr("where no other is beyond 2"));
  EXPECT_EQ(cycle_of("b"), 3U);
}

// Before this was checked, a scanner's cursor for such a peer had followed it.
TEST_F(GatherBoundsTest, PeerCycleOutOfReachButCursorFollowedIt_Fails) {
  advance("c", far_off);
  tracker::PeerBook of_c;
  scan_of({"c"}, of_c);
  scan_of({"a", "b"}, book_);
  book_.merge(of_c);
  EXPECT_THAT(error_of(scan(), "c"), HasSubstr("it claims to be in cycle"));
}

TEST_F(GatherBoundsTest, PeerCycleOutOfReachThenNewInstance_IsAGapOnce) {
  scan();
  advance("c", far_off);
  scan();
  cluster_.start_anew(cluster_["c"]);
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'c' lost")));
  EXPECT_THAT(scan().gaps, IsEmpty());
  EXPECT_EQ(cycle_of("c"), cycle_of("a"));
}

TEST_F(GatherBoundsTest, NewNodeInOldClusterOfTwo_AdvancesInEitherScanOrder) {
  for (const bool is_new_first : {false, true}) {
    cluster_.start_anew(cluster_["a"]);
    cluster_.start_anew(cluster_["b"]);
    tracker::PeerBook of_a;
    tracker::PeerBook of_b;
    advance("a", 5'000'000);
    scan_of({"a"}, of_a);
    auto& first = is_new_first ? of_b : of_a;
    auto& second = is_new_first ? of_a : of_b;
    EXPECT_TRUE(scan_of({"a", "b"}, first).complete());
    EXPECT_EQ(cycle_of("b"), cycle_of("a"));
    EXPECT_TRUE(scan_of({"a", "b"}, second).complete());
    EXPECT_GT(cycle_of("b"), 5'000'000U);
    EXPECT_EQ(cycle_of("b"), cycle_of("a"));
  }
}

TEST_F(GatherBoundsTest, NodeReturnsAfterLongOutage_AdvancesToCurrentCycle) {
  scan();
  mark("c", "bucket/only-c-knows");
  cluster_["c"].is_down = true;
  advance("a", 1'000'000'000);
  scan();
  cluster_["c"].is_down = false;
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, IsEmpty());
  EXPECT_TRUE(holds(gathered, "bucket/only-c-knows"));
  EXPECT_EQ(cycle_of("c"), cycle_of("a"));
}

// Where two agree on a number, a third one must follow: in steps, and each of its marks is read on the way.
TEST_F(GatherBoundsTest, NodeFurtherBehindThanReach_AdvancesInSteps) {
  advance("a", far_off);
  advance("b", far_off);
  scan();
  for (int step = 0; step < 6; ++step) {
    const std::string path = "bucket/" + std::to_string(step);
    mark("c", path);
    const auto gathered = scan();
    EXPECT_TRUE(gathered.complete()) << error_of(gathered, "c");
    EXPECT_THAT(gathered.gaps, IsEmpty());
    EXPECT_TRUE(holds(gathered, path));
  }
  EXPECT_EQ(cycle_of("c"), cycle_of("a"));
}

TEST_F(GatherBoundsTest, OnlyTracker_AnyCycleIsAccepted) {
  advance("a", far_off);
  tracker::PeerBook book;
  EXPECT_TRUE(scan_of({"a"}, book).complete());
  EXPECT_EQ(cycle_of("a"), far_off + 1);
}

TEST_F(GatherBoundsTest, ResponseOverSizeLimit_IsAGapOnceAndMovesCursor) {
  scan();
  mark_many("b");
  mark("c", "bucket/x");
  cluster_["b"].body_bytes_max = 200;
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'b' holds more marks than a scan reads")));
  EXPECT_TRUE(gathered.marks.tree_marks().covers("any/path"));
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(book_[cluster_.id("b")].cycle, gathered.cycle) << "the full walk covers what came before";

  mark("b", "bucket/after");
  cluster_["b"].body_bytes_max = 100'000;
  const auto next = scan();
  EXPECT_TRUE(next.complete());
  EXPECT_THAT(next.gaps, IsEmpty());
  EXPECT_TRUE(holds(next, "bucket/after"));
}

TEST_F(GatherBoundsTest, OtherNodeAtAddressInThirdRound_MovesNoCursor) {
  scan();
  mark_many("b");
  cluster_["b"].body_bytes_max = 200;
  const auto id = cluster_.id("b");
  const auto kept = book_[id];
  before_request("b", 3, [](auto& node) { node.identity.node = "another"; });
  const auto gathered = scan();
  EXPECT_FALSE(gathered.complete());
  EXPECT_THAT(error_of(gathered, "b"), HasSubstr("node 'another' answers in its place"));
  EXPECT_EQ(book_[id], kept);
}

}  // namespace
}  // namespace spoor::peer
