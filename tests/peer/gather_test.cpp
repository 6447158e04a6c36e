#include "peer/gather/gather.h"

#include "tests/peer/gather_fixture.h"

namespace spoor::peer {
namespace {

class GatherTest : public GatherFixture {
 protected:
  GatherTest() : GatherFixture({"a", "b", "c"}) { options_.min_cycle_age = std::chrono::seconds(60); }

  // Gives the host's current cycle these marks, whatever its tracker would have made of them.
  void put(const std::string& host, tracker::MarkSet marks) {
    tracker::TrackerState changed = state(host);
    changed.current_marks = std::make_shared<const tracker::MarkSet>(std::move(marks));
    restart(host, std::move(changed));
  }

  // So many items, in one filter that is made for 1000.
  static tracker::MarkSet items_named(const std::string& name, int count) {
    tracker::MarkSet marks;
    for (int number = 0; number < count; ++number) {
      marks.add(tracker::hash_path(name + std::to_string(number)),
                FakeCluster::tracker_options().levels.shape(0));
    }
    return marks;
  }
};

TEST_F(GatherTest, FirstScan_ReadsAllPeersFromTheirBirth) {
  mark("a", "bucket/x");
  const auto first = scan();
  EXPECT_THAT(first.gaps, IsEmpty());
  EXPECT_TRUE(holds(first, "bucket/x"));
  EXPECT_TRUE(first.marks.tree_marks().empty());
  clock_.advance(std::chrono::hours(1));
  scan();
  clock_.advance(std::chrono::hours(1));
  EXPECT_FALSE(holds(scan(), "bucket/x"));
}

TEST_F(GatherTest, NewPeerFailsFirstRead_IsExpectedAndReadFromItsBirth) {
  scan();
  cluster_.add("d");
  before_request("d", 2, [](auto& node) { node.is_down = true; });
  listed_.push_back("d");
  EXPECT_FALSE(scan().complete());
  cluster_["d"].is_down = false;
  listed_.pop_back();
  EXPECT_THAT(failed(scan()), ElementsAre("d")) << "it was found, and has no address now";
  listed_.push_back("d");
  mark("d", "bucket/on-d");
  const auto second = scan();
  EXPECT_THAT(second.gaps, IsEmpty());
  EXPECT_TRUE(holds(second, "bucket/on-d"));
  EXPECT_TRUE(second.complete());
}

TEST_F(GatherTest, MarksOfAllPeers_AreMerged) {
  scan();
  clock_.advance(std::chrono::hours(1));
  mark("a", "bucket/x");
  mark("c", "bucket/y");
  const auto gathered = scan();
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_TRUE(holds(gathered, "bucket/y"));
  EXPECT_FALSE(holds(gathered, "bucket/z"));
}

TEST_F(GatherTest, CurrentCycle_IsJoinedUntilMinCycleAge) {
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(scan().cycle.value, 2U);
  EXPECT_EQ(scan().cycle.value, 2U);
  clock_.advance(std::chrono::seconds(59));
  EXPECT_EQ(scan().cycle.value, 2U);
  clock_.advance(std::chrono::seconds(1));
  EXPECT_EQ(scan().cycle.value, 3U);
}

TEST_F(GatherTest, EveryTracker_AdvancesToHighestCycle) {
  advance("b", 41);
  clock_.advance(std::chrono::hours(1));
  EXPECT_EQ(scan().cycle.value, 42U);
  for (const auto& host : listed_) EXPECT_EQ(cycle_of(host), 42U) << host;
}

// A tracker that was brought to a cycle late says nothing of how long the others have been in it.
TEST_F(GatherTest, CycleAge_IsThatOfTheOldestTracker) {
  std::uint64_t cycle = 5;
  for (const auto& [first, second] : {std::pair("a", "b"), std::pair("b", "a")}) {
    advance(first, cycle);
    clock_.advance(std::chrono::seconds(70));
    advance(second, cycle);
    EXPECT_EQ(scan().cycle.value, cycle + 1);
    cycle += 5;
  }
}

TEST_F(GatherTest, JoinedCycle_IncludesItsLiveMarks) {
  scan();
  mark("b", "bucket/live");
  const auto joined = scan();
  ASSERT_EQ(joined.cycle.value, 1U);
  EXPECT_TRUE(holds(joined, "bucket/live"));
}

TEST_F(GatherTest, ReadOnlyGather_DoesNotAdvanceCycles) {
  clock_.advance(std::chrono::hours(1));
  mark("a", "bucket/x");
  advance("b", 41);
  options_.read_only = true;
  clock_.advance(std::chrono::hours(1));
  const auto gathered = gather();
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(gathered.cycle.value, 41U);
  EXPECT_EQ(cycle_of("a"), 1U);
  EXPECT_EQ(cycle_of("b"), 41U);
}

// #15 E6: where the peer is still in the cycle of its cursor, a cursor that moves looks as one that stays.
TEST_F(GatherTest, PeerInALaterCycleFailsInTheSecondRound_KeepsItsCursor) {
  const std::vector<std::function<void(FakeCluster::Node&)>> failures{
      [](auto& node) { node.is_down = true; },
      [](auto& node) { node.garbage = "hello"; },
      [](auto& node) { node.identity.node = "other"; },
      [](auto& node) { node.identity.cluster = "other"; },
  };
  for (const auto& fail : failures) {
    scan();
    const auto id = cluster_.id("b");
    const auto before = book_.at(id);
    mark("b", "bucket/unread");
    auto& b = cluster_["b"];
    b.tracker->advance({before.cycle.value + 3});
    before_request("b", 2, fail);
    const auto partial = scan();
    EXPECT_THAT(failed(partial), ElementsAre("b"));
    EXPECT_THAT(partial.gaps, IsEmpty());
    EXPECT_EQ(book_.at(id), before);
    b.before_answer = [] {};
    b.is_down = false;
    b.garbage.clear();
    b.identity = {"c", "b"};
    EXPECT_TRUE(holds(scan(), "bucket/unread"));
  }
}

TEST_F(GatherTest, PeerStartsAsNewInstanceBetweenRounds_IsAGap) {
  scan();
  before_request("b", 2, [this](auto& node) { cluster_.start_anew(node); });
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, SizeIs(1));
  EXPECT_TRUE(gathered.marks.tree_marks().covers("any/path"));
}

TEST_F(GatherTest, ManyCyclesWithoutAScan_AreNoGap) {
  scan();
  for (std::uint64_t cycle = 2; cycle < 40; ++cycle) {
    mark("a", "bucket/" + std::to_string(cycle));
    advance("a", cycle);
  }
  EXPECT_THAT(scan().gaps, SizeIs(0));
}

TEST_F(GatherTest, PeerAtTwoEndpoints_MarksAreReadOnce) {
  cluster_.alias("a", "alias-of-a");
  listed_.push_back("alias-of-a");
  const auto gathered = scan();
  EXPECT_THAT(gathered.peers, SizeIs(3));
  EXPECT_THAT(cluster_["a"].asked, SizeIs(3));  // twice who it is, once the marks
}

// A copy that was given a name of its own while it ran on the same memory.
TEST_F(GatherTest, SameInstanceUnderTwoNames_IsTwoPeers) {
  cluster_.add("d");
  restart("d", state("a"));
  listed_.push_back("d");
  mark("d", "bucket/on-d");
  const auto gathered = scan();
  EXPECT_THAT(gathered.peers, SizeIs(4));
  EXPECT_TRUE(holds(gathered, "bucket/on-d"));
}

TEST_F(GatherTest, OtherClusterOrGarbageResponse_IsReportedNotMerged) {
  scan();
  cluster_["b"].identity.cluster = "other";
  cluster_["c"].garbage = "hello";
  auto gathered = scan();
  EXPECT_THAT(error_of(gathered, "http://b:7420"), HasSubstr("wrong cluster"));
  EXPECT_THAT(error_of(gathered, "http://c:7420"), HasSubstr("no cycle frame"));
  EXPECT_EQ(error_of(gathered, "a"), "");
  cluster_["b"].garbage = encode_cycle_frame({{"other", "b"}, 0, 0, cluster_["b"].tracker->cycle({})});
  EXPECT_THAT(error_of(scan(), "http://b:7420"), HasSubstr("belongs to cluster 'other'"));
}

// What a peer ignores it does not remember for those who do not.
TEST_F(GatherTest, IgnoreRulesDiffer_IsAGapUntilTheyAgree) {
  scan();
  cluster_["b"].rules_digest = 7;
  for (int round = 0; round < 2; ++round) {
    const auto gathered = scan();
    EXPECT_TRUE(gathered.complete());
    ASSERT_THAT(gathered.gaps, SizeIs(1));
    EXPECT_THAT(gathered.gaps[0], HasSubstr("'b' ignores other paths"));
  }
  options_.rules_digest = 7;
  EXPECT_THAT(scan().gaps, SizeIs(2)) << "now the others differ";
  options_.rules_digest = 0;
  cluster_["b"].rules_digest = 0;
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(GatherTest, StartLevel_IsSentWithCycleToOpen) {
  options_.start_level = 5;
  scan();
  for (const auto& host : listed_) {
    const auto& asked = cluster_[host].asked;
    ASSERT_THAT(asked, SizeIs(2));
    EXPECT_EQ(asked[0].start_level, 0U) << "who only asks for the cycle wants nothing of it";
    EXPECT_EQ(asked[1].start_level, 5U);
  }
  options_.read_only = true;
  gather();
  for (const auto& host : listed_) EXPECT_EQ(cluster_[host].asked.back().start_level, 0U);
}

TEST_F(GatherTest, ItemsSharedByPeers_AreCountedOnce) {
  scan();
  for (const auto& host : listed_) put(host, items_named("shared", 500));
  EXPECT_NEAR(scan().items, 500, 25);
}

TEST_F(GatherTest, NoMarks_CountNoItems) {
  EXPECT_EQ(scan().items, 0);
  listed_.clear();
  EXPECT_EQ(gather().items, 0);
}

// 18,000 items leave no bit of the merged filter unset: by itself it would tell of 13,504.
TEST_F(GatherTest, MergedFilterFull_ItemsAreEstimatedFromResponses) {
  scan();
  for (const auto& host : listed_) put(host, items_named(host, 6'000));
  const auto gathered = scan();
  tracker::MarkSet merged;
  merged.merge(gathered.marks);
  EXPECT_LT(tracker::MarkSetFigures::of(merged).items, 14'000);
  EXPECT_EQ(gathered.marks.group_count(), listed_.size());
  EXPECT_NEAR(gathered.items, 18'000, 900);
}

TEST_F(GatherTest, NextStartLevel_FitsTwiceTheUnion) {
  scan();
  const tracker::LevelSchedule levels = FakeCluster::tracker_options().levels;
  put("a", items_named("x", 400));
  EXPECT_EQ(levels.start_level_for(scan().items), 0U);
  put("a", items_named("x", 400));
  put("b", items_named("y", 300));
  EXPECT_EQ(levels.start_level_for(scan().items), 1U);
}

TEST_F(GatherTest, FiltersOverByteLimit_AreAGapOnce) {
  scan();
  const auto before = book_.at(cluster_.id("b"));
  clock_.advance(std::chrono::hours(1));
  mark("b", "bucket/x");
  options_.marks_bytes_max = 1;
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'b' sent filters of more than 1 bytes")));
  EXPECT_TRUE(gathered.marks.tree_marks().covers("bucket/x"));
  EXPECT_TRUE(gathered.complete());
  EXPECT_NEAR(gathered.items, 2, 0.1) << "what could not be merged counts";
  EXPECT_NE(book_.at(cluster_.id("b")), before) << "the full walk covers it";
  clock_.advance(std::chrono::hours(1));
  scan();  // of the cycle that was current then, once more
  EXPECT_THAT(scan().gaps, IsEmpty());
}

TEST_F(GatherTest, FiltersOverByteLimitBesideThoseOfOthers_AreAGap) {
  scan();
  mark("b", "bucket/x");
  tracker::MarkSet large;
  large.add(tracker::hash_path("bucket/y"), tracker::BloomShape::for_items(1'000'000, 0.01));
  put("a", std::move(large));  // responds last
  options_.marks_bytes_max = 100'000;
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'a' sent filters of more than")));
  EXPECT_TRUE(gathered.marks.tree_marks().covers("bucket/y"));
}

TEST_F(GatherTest, AllPeersDown_KeepsEveryCycle) {
  scan();
  const auto before = book_;
  for (const auto& host : listed_) cluster_[host].is_down = true;
  const auto gathered = scan();
  for (const auto& [name, cursor] : before) EXPECT_EQ(gathered.book.at(name), cursor);
  EXPECT_THAT(gathered.gaps, IsEmpty());
}

}  // namespace
}  // namespace spoor::peer
