// The book of the peers that a scanner knows, by name and instance: no marks of a member are forgotten with
// its address, and a member that only moved costs no full walk (docs/cluster.md, "Joining").
#include "tests/peer/known_peers_fixture.h"

namespace spoor::peer {
namespace {

// --- members that join ---

TEST_F(KnownPeersTest, NewNode_IsReadFromItsBirthWithoutAGap) {
  cluster_.add("d");
  mark("d", "bucket/x");
  listed_.push_back("d");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(book_.at(cluster_.id("d")).home, "http://d:7420");
}

TEST_F(KnownPeersTest, NewNodeThatDroppedMarks_IsAGapOnce) {
  cluster_.add("d");
  tracker::TrackerState of_d = state("d");
  of_d.complete_since_birth = false;
  restart("d", std::move(of_d));
  listed_.push_back("d");
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("'d' no longer keeps all marks since its birth")));
  expect_complete(scan());
}

TEST_F(KnownPeersTest, RecordedStranger_IsPartialAndThenGoneByOneGap) {
  const PeerId stranger = add_stranger("d");
  const auto first = scan();
  EXPECT_THAT(failed(first), ElementsAre("d"));
  EXPECT_THAT(first.gaps, IsEmpty());
  EXPECT_EQ(book_.at(stranger).cycle, tracker::CycleId());
  expect_gone_after_a_while(stranger);
  expect_complete(scan());
}

TEST_F(KnownPeersTest, RecordedStrangerResponds_IsReadFromItsBirth) {
  add_stranger("d");
  mark("d", "bucket/x");
  EXPECT_FALSE(scan().complete());
  listed_.push_back("d");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

TEST_F(KnownPeersTest, ListedEndpointSilent_StrangerThatMayBeThereIsNotForgotten) {
  const PeerId stranger = add_stranger("d");
  cluster_["d"].is_down = true;
  listed_.push_back("d");
  for (int times = 0; times < 10; ++times) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }
  EXPECT_EQ(book_.at(stranger).standing, Standing::expected);
}

TEST_F(KnownPeersTest, FirstScan_RecordedMembersThatAreSilentAreExpected) {
  book_.clear();
  const PeerId stranger = add_stranger("d");
  mark("d", "bucket/x");
  EXPECT_FALSE(scan().complete());
  EXPECT_EQ(book_.at(stranger).standing, Standing::expected);
  listed_.push_back("d");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

// A first scan that walked everything without its own daemon, for example.
TEST_F(KnownPeersTest, ScannedBeforeWithoutPeers_ReplacedInstanceIsAGap) {
  cluster_.record("a", {"b", tracker::InstanceId::random()});
  book_.clear();
  EXPECT_THAT(scan().gaps, IsEmpty()) << "a first scan walks everything anyway";
  book_.clear();
  options_.has_scanned = true;
  EXPECT_FALSE(scan().complete());
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'b' lost")));
  expect_complete(scan());
}

TEST_F(KnownPeersTest, MoreMembersThanCanBeExpected_AreAGap) {
  for (const char* host : {"a", "b"}) {
    tracker::TreeMarks::Members members;
    for (int i = 0; i < 6'000; ++i) {
      const auto record = tracker::joined_mark({{"x" + std::to_string(i), tracker::InstanceId::random()}});
      tracker::TreeMarks::add_member(record.path, members);
    }
    tracker::TreeMarks records;
    records.add_members(members);
    tracker::TrackerState changed = state(host);
    auto marks = std::make_shared<tracker::MarkSet>(*changed.current_marks);
    marks->add_members(records);
    changed.current_marks = std::move(marks);
    restart(host, std::move(changed));
  }
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, ElementsAre("peers reported more than 10000 members that were never read"));
  EXPECT_EQ(book_.size(), 10'002U);
}

TEST_F(KnownPeersTest, Records_AreNoMarksOfTheScan) {
  add_stranger("d");
  EXPECT_TRUE(scan().marks.tree_marks().empty());
}

TEST_F(KnownPeersTest, PeerWithTooManyRecords_IsAGap) {
  const tracker::Mark all{std::string(tracker::TreeMarks::member_top), tracker::MarkKind::tree};
  cluster_["a"].tracker->mark({&all, 1});
  EXPECT_THAT(scan().gaps, ElementsAre("peer 'a' has met more members than it can record"));
}

// A full walk shows marks, and no members: the cursor would move beyond their records.
TEST_F(KnownPeersTest, ResponseTooLarge_RecordsAreReadNevertheless) {
  const PeerId stranger = add_stranger("d");
  mark_many("a");
  cluster_["a"].body_bytes_max = 300;
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'a' holds more marks than a scan reads")));
  EXPECT_TRUE(book_.contains(stranger));
}

// --- addresses ---

TEST_F(KnownPeersTest, HomeThatNoSourceLists_IsStillRead) {
  mark("b", "bucket/x");
  listed_ = {"a"};
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
}

TEST_F(KnownPeersTest, SilentPeer_KeepsItsCycle) {
  mark("b", "bucket/x");
  const auto before = book_.at(cluster_.id("b")).cycle;
  cluster_["b"].is_down = true;
  for (int times = 0; times < 10; ++times) {
    const auto gathered = scan();
    EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420"));
    EXPECT_THAT(gathered.gaps, IsEmpty()) << "it is listed";
  }
  EXPECT_EQ(book_.at(cluster_.id("b")).cycle, before);
  cluster_["b"].is_down = false;
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(book_.at(cluster_.id("b")).silent.count(), 0);
}

TEST_F(KnownPeersTest, SilentPeerThatNoSourceLists_IsGoneByOneGapAndReturnsWithoutOne) {
  const PeerId b = cluster_.id("b");
  const auto before = book_.at(b).cycle;
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  expect_gone_after_a_while(b);
  expect_complete(scan());
  EXPECT_EQ(book_.at(b).cycle, before);

  cluster_["b"].is_down = false;
  mark("b", "bucket/x");
  listed_ = {"a", "b1"};
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(book_.at(b).standing, Standing::expected);
}

// As long as it sees itself listed by the DNS, or in etcd, it acknowledges marks.
TEST_F(KnownPeersTest, SilentWhileASourceListsIt_IsGoneOnlyForgetAfterThat) {
  cluster_["b"].is_down = true;
  for (int times = 0; times < 10; ++times) EXPECT_FALSE(scan().complete());
  listed_ = {"a"};
  expect_gone_after_a_while(cluster_.id("b"));
}

TEST_F(KnownPeersTest, AnotherListedMemberIsSilentForAWhile_SilenceIsKept) {
  cluster_.add("d");
  listed_ = {"a", "b1", "d"};
  expect_complete(scan());
  listed_ = {"a", "b1"};
  cluster_["d"].is_down = true;
  for (int times = 0; times < 2; ++times) EXPECT_FALSE(scan().complete());
  cluster_["b"].is_down = true;
  EXPECT_FALSE(scan().complete());
  cluster_["b"].is_down = false;
  EXPECT_THAT(scan().gaps, ElementsAre("peer 'd' is no longer among the peers"));
}

// An address where nobody was ever read may be that of anybody.
TEST_F(KnownPeersTest, UnknownListedAddressIsSilent_SilenceStartsOver) {
  cluster_.add("d");
  listed_ = {"a", "b1", "d"};
  expect_complete(scan());
  listed_ = {"a", "b1"};
  cluster_["d"].is_down = true;
  for (int times = 0; times < 3; ++times) EXPECT_FALSE(scan().complete());
  listed_ = {"a", "b1", "nowhere"};
  EXPECT_FALSE(scan().complete());
  listed_ = {"a", "b1"};
  expect_gone_after_a_while(cluster_.id("d"));
}

// It may have acknowledged marks while it was the only member, and be cut off since.
TEST_F(KnownPeersTest, RegisteredAndNeverRead_IsExpected) {
  cluster_.add("d");
  cluster_["d"].is_down = true;
  const PeerId d = cluster_.id("d");
  listed_ = {"a", "b1", "d"};
  options_.members.not_alive = {"http://d:7420"};
  options_.members.registered = {{d, false}};
  EXPECT_FALSE(scan().complete()) << "it is new";
  options_.members.registered = {};
  expect_gone_after_a_while(d);
}

TEST_F(KnownPeersTest, SilentWhileASourceCannotBeRead_IsGoneOnlyForgetAfterThat) {
  listed_ = {"a"};
  cluster_["b"].is_down = true;
  options_.members.unknown_sources = {"dns x: no answer in time"};
  for (int times = 0; times < 10; ++times) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
    EXPECT_EQ(gathered.unknown_sources, options_.members.unknown_sources);
  }
  options_.members.unknown_sources.clear();
  expect_gone_after_a_while(cluster_.id("b"));
}

// The operator says that it is gone.
TEST_F(KnownPeersTest, SilentAndTakenOutOfTheStaticPeers_IsGoneAtOnce) {
  cluster_["b"].is_down = true;
  options_.members.named_urls = {"http://a:7420", "http://b1:7420"};
  for (int times = 0; times < 4; ++times) EXPECT_FALSE(scan().complete());
  listed_ = {"a"};
  options_.members.named_urls = {"http://a:7420"};
  EXPECT_THAT(scan().gaps, ElementsAre("peer 'b' is no longer among the peers"));
  expect_complete(scan());
}

TEST_F(KnownPeersTest, ListedAsNotAlive_IsGoneAndItsAddressIsOfNoInterest) {
  const PeerId b = cluster_.id("b");
  cluster_["b"].is_down = true;
  options_.members.not_alive = {"http://b1:7420"};
  expect_gone_after_a_while(b);
  expect_complete(scan());
  cluster_["b"].is_down = false;
  mark("b", "bucket/x");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x")) << "its address is asked all the same";
}

// No member is forgotten before several scans have requested it, however long the last scan was ago.
// It has returned, and responds at no address that is known here.
TEST_F(KnownPeersTest, PeerThatIsGoneIsMetAgain_IsExpectedForForgetAfter) {
  const PeerId b = cluster_.id("b");
  listed_ = {"a"};
  cluster_["b"].is_down = true;
  expect_gone_after_a_while(b);
  for (const std::uint64_t run : {1U, 2U}) {
    cluster_.record("a", b, run);
    EXPECT_FALSE(scan().complete()) << "its silence begins";
    expect_gone_after_a_while(b);
    expect_complete(scan());
  }
}

TEST_F(KnownPeersTest, SilentPeerThatAnotherStillMeets_IsNotGone) {
  const PeerId b = cluster_.id("b");
  listed_ = {"a"};
  cluster_["b"].is_down = true;
  for (std::uint64_t hour = 1; hour < 10; ++hour) {
    cluster_.record("a", b, hour);
    const auto gathered = scan();
    EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420"));
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }
}

// The token is not sent to an address that no source lists.
TEST_F(KnownPeersTest, PeerThatRefusesTheCredentials_IsNotGone) {
  listed_ = {"a"};
  cluster_["b"].garbage = "who are you?";
  for (int times = 0; times < 12; ++times) {
    cluster_["b"].garbage_status = times < 6 ? 401 : 403;
    const auto gathered = scan();
    EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420"));
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }
}

TEST_F(KnownPeersTest, LongPauseBetweenScans_CountsAsAQuarterOfForgetAfter) {
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  options_.since_last_scan = hours(24 * 365);
  expect_gone_after_a_while(cluster_.id("b"));
}

TEST_F(KnownPeersTest, PeerThatIsGone_ListedAndSilent_IsPartial) {
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  expect_gone_after_a_while(cluster_.id("b"));
  listed_ = {"a", "b1"};
  const auto gathered = scan();
  EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420")) << "it may be back, and acknowledge marks";
  EXPECT_THAT(gathered.gaps, IsEmpty());
}

TEST_F(KnownPeersTest, NodeMoved_IsReadAtItsNewAddress) {
  move_b();
  mark("b", "bucket/x");
  listed_ = {"a", "b2"};
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_EQ(book_.at(cluster_.id("b")).home, "http://b2:7420");
  expect_complete(scan());
}

TEST_F(KnownPeersTest, NodeAtTwoAddresses_OneFailsBriefly_IsNoGap) {
  cluster_.alias("b", "b2");
  listed_ = {"a", "b1", "b2"};
  scan();
  cluster_.remove_alias("b2");
  EXPECT_FALSE(scan().complete());
  cluster_.alias("b", "b2");
  expect_complete(scan());
}

TEST_F(KnownPeersTest, SilentHomeOfAPeerThatIsReadElsewhere_IsNotReported) {
  move_b();
  cluster_["b"].certificate_names = {"b.storage.example"};
  listed_ = {"a", "b1", "b2"};
  expect_complete(scan());
}

// --- instances ---

TEST_F(KnownPeersTest, OtherInstanceOfItsName_IsAGapAtOnce) {
  const PeerId old = cluster_.id("b");
  mark("b", "bucket/lost");
  start_anew("b");
  mark("b", "bucket/x");
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'b' lost")));
  EXPECT_EQ(book_.at(old).standing, Standing::gone);
  mark("b", "bucket/y");
  const auto next = scan();
  expect_complete(next);
  EXPECT_TRUE(holds(next, "bucket/y"));
}

// As from a backup of the data directory, or a disk that was mounted too late.
TEST_F(KnownPeersTest, ReplacedInstanceReturns_IsReadFromItsCycleWithoutAGap) {
  auto old = start_anew("b");
  scan();
  swap_tracker("b", std::move(old));
  mark("b", "bucket/x");
  const auto gathered = scan();
  EXPECT_THAT(gathered.gaps, SizeIs(1)) << "of the other one, which is gone now";
  mark("b", "bucket/y");
  EXPECT_TRUE(holds(scan(), "bucket/y"));
}

TEST_F(KnownPeersTest, TwoInstancesOfOneName_AreBothRead) {
  cluster_.add("twin", "b");
  listed_.push_back("twin");
  mark("b", "bucket/x");
  mark("twin", "bucket/y");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/x"));
  EXPECT_TRUE(holds(gathered, "bucket/y"));
}

TEST_F(KnownPeersTest, OneOfTwoInstancesOfOneNameIsSilent_IsPartialInEveryScan) {
  cluster_.add("twin", "b");
  listed_.push_back("twin");
  scan();
  cluster_["twin"].is_down = true;
  for (int times = 0; times < 3; ++times) EXPECT_THAT(failed(scan()), ElementsAre("http://twin:7420"));
}

// Its data directory was copied, and given a name of its own.
TEST_F(KnownPeersTest, CopyUnderAnotherName_IsNoRenamedNode) {
  cluster_.add("copy");
  restart("copy", state("b"));
  cluster_["b"].is_down = true;
  listed_.push_back("copy");
  EXPECT_THAT(failed(scan()), ElementsAre("http://b1:7420"));
}

// As an address in Kubernetes that was given to another node: the peer may be back for a while.
TEST_F(KnownPeersTest, OtherNodeAtTheHomeForForgetAfter_IsGoneByOneGap) {
  const PeerId b = cluster_.id("b");
  cluster_.remove_alias("b1");
  cluster_.alias("a", "b1");
  expect_gone_after_a_while(b);
  expect_complete(scan());
}

// --- copies ---

// A cloned machine: both started after a clean stop.
class CopiesTest : public KnownPeersTest {
 protected:
  CopiesTest() {
    cluster_.add("copy", "b").run = 1;
    restart("copy", state("b"));
  }

  void expect_gap_by_copies() {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("2 running trackers call themselves 'b'")));
  }
};

TEST_F(CopiesTest, TwoRunningCopies_AreAGapInEveryScanAndOnceMore) {
  listed_.push_back("copy");
  for (int times = 0; times < 2; ++times) expect_gap_by_copies();
  listed_.pop_back();
  EXPECT_THAT(scan().gaps, SizeIs(1)) << "what the copy knew is gone with it";
  expect_complete(scan());
}

TEST_F(CopiesTest, TwoRunningCopiesAtAddressesThatNoSourceLists_AreNotGone) {
  listed_.push_back("copy");
  expect_gap_by_copies();
  cluster_.remove_alias("b1");
  cluster_.alias("b", "b2");
  listed_ = {"a", "b2", "copy"};
  for (int times = 0; times < 6; ++times) expect_gap_by_copies();
  EXPECT_EQ(book_.at(cluster_.id("b")).standing, Standing::copied);
}

TEST_F(CopiesTest, ThirdTrackerOfTheName_TheCopiesStayCopies) {
  cluster_.add("third", "b");
  listed_ = {"a", "b1", "copy", "third"};
  expect_gap_by_copies();
  EXPECT_EQ(book_.at(cluster_.id("copy")).standing, Standing::copied);
  listed_ = {"a", "b1", "third"};
  EXPECT_THAT(scan().gaps, SizeIs(1));
}

// --- the own node ---

TEST_F(KnownPeersTest, OwnAddressChanges_IsNoGap) {
  options_.own_url = "http://a:7420";
  options_.own_name = "a";
  scan();
  EXPECT_EQ(book_.at(cluster_.id("a")).home, "");
  cluster_.alias("a", "other-socket-of-a");
  options_.own_url = "http://other-socket-of-a:7420";
  listed_ = {"other-socket-of-a", "b1"};
  expect_complete(scan());
}

}  // namespace
}  // namespace spoor::peer
