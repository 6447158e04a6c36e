// The book of the peers that a scanner knows, by name and instance: no marks of a member are forgotten with
// its address, and a member that only moved costs no full walk (docs/cluster.md, "Joining").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "peer/gather/gather.h"
#include "tests/fakes/fake_cluster.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using fakes::FakeCluster;
using std::chrono::hours;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using tracker::PeerId;
using tracker::Standing;

// Nodes "a" and "b", which were read once; "b" at the address "b1".
class KnownPeersTest : public testing::Test {
 protected:
  KnownPeersTest() {
    for (const char* host : {"a", "b"}) cluster_.add(host);
    cluster_.alias("b", "b1");
    options_.cluster = "c";
    options_.forget_after = hours(24);
    options_.since_last_scan = hours(6);
    scan();
  }

  Gathered scan() {
    clock_.advance(hours(6));
    options_.members.endpoints = FakeCluster::endpoints(listed_);
    auto gathered = gather(cluster_, book_, options_);
    book_ = gathered.book;
    return gathered;
  }

  void move_b() {
    cluster_.remove_alias("b1");
    cluster_.alias("b", "b2");
  }

  // Another data directory, or the old one.
  std::unique_ptr<tracker::Tracker> swap_tracker(const std::string& host,
                                                 std::unique_ptr<tracker::Tracker> other) {
    std::swap(cluster_[host].tracker, other);
    return other;
  }
  std::unique_ptr<tracker::Tracker> start_anew(const std::string& host) {
    auto old = swap_tracker(host, nullptr);
    cluster_.start_anew(cluster_[host]);
    return old;
  }

  void mark(const std::string& host, const std::string& path) {
    const tracker::Mark mark{path, tracker::MarkKind::dir};
    cluster_[host].tracker->mark({&mark, 1});
  }

  // A node that no source lists, and that "a" has recorded.
  PeerId add_stranger(const std::string& host) {
    cluster_.add(host);
    cluster_.record("a", cluster_.id(host));
    return cluster_.id(host);
  }

  // Until the peer is gone: the scan that finds it so.
  Gathered scan_until_gone(const PeerId& id) {
    for (int times = 0; times < 3; ++times) {
      const auto gathered = scan();
      EXPECT_FALSE(gathered.complete());
      EXPECT_THAT(gathered.gaps, IsEmpty());
      EXPECT_EQ(book_.at(id).standing, Standing::expected);
    }
    return scan();
  }

  static bool holds(const Gathered& gathered, std::string_view path) {
    return gathered.marks.may_contain(path, tracker::hash_path(path));
  }

  static void expect_complete(const Gathered& gathered) {
    EXPECT_TRUE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
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
  std::vector<std::string> listed_{"a", "b1"};
  tracker::PeerBook book_;
  GatherOptions options_;
};

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
  auto& d = cluster_.add("d");
  tracker::TrackerState state = d.tracker->state();
  state.complete_since_birth = false;
  d.tracker = std::make_unique<tracker::Tracker>(FakeCluster::tracker_options(), clock_, state);
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
  for (int times = 0; times < 2; ++times) EXPECT_THAT(failed(scan()), ElementsAre("d"));
  const auto gone = scan();
  EXPECT_TRUE(gone.complete());
  EXPECT_THAT(gone.gaps, ElementsAre("peer 'd' is no longer among the peers"));
  expect_complete(scan());
  EXPECT_EQ(book_.at(stranger).standing, Standing::gone);
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

// The records are no directories: a walk has no use for them.
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
    tracker::TrackerState state = cluster_[host].tracker->state();
    auto marks = std::make_shared<tracker::MarkSet>(*state.current_marks);
    marks->add_members(records);
    state.current_marks = std::move(marks);
    swap_tracker(
        host, std::make_unique<tracker::Tracker>(FakeCluster::tracker_options(), clock_, std::move(state)));
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
  for (int number = 0; number < 200; ++number) mark("a", "bucket/" + std::to_string(number));
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
  EXPECT_THAT(scan_until_gone(b).gaps, ElementsAre("peer 'b' is no longer among the peers"));
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

// No member is forgotten before several scans have requested it, however long the last scan was ago.
// It has returned, and responds at no address that is known here.
TEST_F(KnownPeersTest, PeerThatIsGoneIsMetAgain_IsExpectedForForgetAfter) {
  const PeerId b = cluster_.id("b");
  listed_ = {"a"};
  cluster_["b"].is_down = true;
  scan_until_gone(b);
  for (const std::uint64_t run : {1U, 2U}) {
    cluster_.record("a", b, run);
    EXPECT_THAT(scan_until_gone(b).gaps, ElementsAre("peer 'b' is no longer among the peers"));
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
  cluster_["b"].garbage_status = 401;
  for (int times = 0; times < 6; ++times) {
    const auto gathered = scan();
    EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420"));
    EXPECT_THAT(gathered.gaps, IsEmpty());
  }
}

TEST_F(KnownPeersTest, LongPauseBetweenScans_CountsAsAQuarterOfForgetAfter) {
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  options_.since_last_scan = hours(24 * 365);
  EXPECT_THAT(scan_until_gone(cluster_.id("b")).gaps, SizeIs(1));
}

TEST_F(KnownPeersTest, PeerThatIsGone_ListedAndSilent_IsPartial) {
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  scan_until_gone(cluster_.id("b"));
  listed_ = {"a", "b1"};
  const auto gathered = scan();
  EXPECT_THAT(failed(gathered), ElementsAre("http://b1:7420")) << "it may be back, and acknowledge marks";
  EXPECT_THAT(gathered.gaps, IsEmpty());
}

TEST_F(KnownPeersTest, SourceUnknown_NoMemberIsGone) {
  cluster_["b"].is_down = true;
  listed_ = {"a"};
  options_.members.unknown_sources = {"dns nodes.example: no answer in time"};
  for (int times = 0; times < 10; ++times) {
    const auto gathered = scan();
    EXPECT_FALSE(gathered.complete());
    EXPECT_THAT(gathered.gaps, IsEmpty());
    EXPECT_EQ(gathered.unknown_sources, options_.members.unknown_sources);
  }
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

// As an address in Kubernetes that was given to another node.
TEST_F(KnownPeersTest, OtherNodeAtThePeersAddress_IsPartial) {
  cluster_.remove_alias("b1");
  cluster_.alias("a", "b1");
  const auto gathered = scan();
  EXPECT_THAT(failed(gathered), ElementsAre("b")) << "it may be back";
  EXPECT_THAT(gathered.gaps, IsEmpty());
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
  auto& copy = cluster_.add("copy");
  copy.tracker = std::make_unique<tracker::Tracker>(FakeCluster::tracker_options(), clock_,
                                                    cluster_["b"].tracker->state());
  cluster_["b"].is_down = true;
  listed_.push_back("copy");
  EXPECT_THAT(failed(scan()), ElementsAre("http://b1:7420"));
}

// As an address that a new node got.
TEST_F(KnownPeersTest, OtherNodeAtTheHomeForForgetAfter_IsGoneByOneGap) {
  const PeerId b = cluster_.id("b");
  cluster_.remove_alias("b1");
  cluster_.alias("a", "b1");
  EXPECT_THAT(scan_until_gone(b).gaps, ElementsAre("peer 'b' is no longer among the peers"));
  expect_complete(scan());
}

// --- copies ---

// A cloned machine: both started after a clean stop.
class CopiesTest : public KnownPeersTest {
 protected:
  CopiesTest() {
    auto& copy = cluster_.add("copy", "b");
    copy.tracker = std::make_unique<tracker::Tracker>(FakeCluster::tracker_options(), clock_,
                                                      cluster_["b"].tracker->state());
    copy.run = 1;
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

// --- members that retire ---

// "b" has retired, and "a" has adopted its marks.
class RetiredPeersTest : public KnownPeersTest {
 protected:
  void adopt(const PeerId& id, const tracker::Retired& retired, const std::string& by = "a") {
    auto marks = std::make_shared<tracker::MarkSet>();
    marks->add(tracker::hash_path("bucket/adopted"), tracker::BloomShape::for_items(10, 0.01));
    marks->add_tree(tracker::retired_mark(id, retired).path);
    cluster_[by].tracker->adopt(std::move(marks), {});
  }
  // With what all scans have not read.
  void retire_b() {
    adopt(b_, {last_run, book_.at(b_).cycle});
    cluster_["b"].is_closed = true;
  }
  void leave_b() {
    cluster_["b"].is_down = true;
    listed_ = {"a"};
  }

  static constexpr std::uint64_t last_run = tracker::last_run_of(1);
  const PeerId b_ = cluster_.id("b");
};

TEST_F(RetiredPeersTest, RetiredAndGone_CostsNothing) {
  retire_b();
  leave_b();
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/adopted"));
  EXPECT_EQ(book_.at(b_).standing, Standing::retired);
  for (int times = 0; times < 8; ++times) expect_complete(scan());
}

// What was handed on begins later than what this scanner has read, which reads the rest from the node itself.
TEST_F(RetiredPeersTest, StillRunning_IsReadItself) {
  adopt(b_, {last_run, next(book_.at(b_).cycle)});
  cluster_["b"].is_closed = true;
  mark("b", "bucket/last");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/last"));
  EXPECT_EQ(book_.at(b_).standing, Standing::retired);
  leave_b();
  expect_complete(scan());
}

TEST_F(RetiredPeersTest, CursorBeforeTheAdoptedMarks_IsAGapOnce) {
  adopt(b_, {last_run, next(book_.at(b_).cycle)});
  leave_b();
  const auto gathered = scan();
  EXPECT_TRUE(gathered.complete());
  EXPECT_THAT(gathered.gaps, ElementsAre(HasSubstr("peer 'b' has retired, and was not read since cycle")));
  expect_complete(scan());
}

TEST_F(RetiredPeersTest, NeverRead_IsCoveredOnlyFromTheBirthOn) {
  const PeerId stranger = add_stranger("d");
  cluster_["d"].is_down = true;
  const auto before = book_;
  adopt(stranger, {last_run, {0}});
  expect_complete(scan());
  book_ = before;
  adopt(stranger, {last_run, {1}});
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'd' has retired")));
}

TEST_F(RetiredPeersTest, FirstScan_ExpectsNothingOfIt) {
  book_.clear();
  adopt(b_, {last_run, {5}});
  leave_b();
  expect_complete(scan());
}

TEST_F(RetiredPeersTest, AdoptingMemberSilent_RetiredOneIsExpected) {
  retire_b();
  leave_b();
  cluster_["a"].is_down = true;
  cluster_.add("d");
  listed_.push_back("d");
  const auto partial = scan();
  EXPECT_FALSE(partial.complete());
  EXPECT_THAT(partial.gaps, IsEmpty());
  EXPECT_EQ(book_.at(b_).standing, Standing::expected);
  cluster_["a"].is_down = false;
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/adopted"));
}

// Restored from a copy of before the retirement: what it acknowledged meanwhile may be gone.
TEST_F(RetiredPeersTest, RespondsAsAMember_IsAGapAndExpectedAgain) {
  retire_b();
  expect_complete(scan());
  cluster_["b"].is_closed = false;
  EXPECT_THAT(scan().gaps, ElementsAre("peer 'b' had retired, and is a member again"));
  EXPECT_EQ(book_.at(b_).standing, Standing::expected);
  leave_b();
  EXPECT_FALSE(scan().complete());
}

TEST_F(RetiredPeersTest, RecordOfALaterRun_IsExpectedAgain) {
  retire_b();
  leave_b();
  expect_complete(scan());
  cluster_.record("a", b_, last_run + 1);
  EXPECT_THAT(failed(scan()), ElementsAre("b"));
  EXPECT_EQ(book_.at(b_).standing, Standing::copied);
  listed_ = {"a", "b1"};
  cluster_["b"].is_down = false;
  cluster_["b"].is_closed = false;
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'b' lost")));
  expect_complete(scan());
}

// A copy of before that was a member again, and has retired again: the cycle of the book is not of its
// memory.
TEST_F(RetiredPeersTest, RetiredAgainWithALaterRun_IsAGapOnce) {
  for (const bool is_there : {true, false}) {
    SCOPED_TRACE(is_there);
    cluster_["b"].is_down = false;
    cluster_["b"].is_closed = false;
    listed_ = {"a", "b1"};
    scan();
    adopt(b_, {book_.at(b_).run + 1, book_.at(b_).cycle});
    cluster_["b"].is_closed = true;
    expect_complete(scan());
    const std::uint64_t run = book_.at(b_).run + (1U << 20U);
    cluster_.record("a", b_, run - 1);
    adopt(b_, {run, book_.at(b_).cycle});
    if (!is_there) leave_b();
    EXPECT_THAT(scan().gaps, testing::Contains(HasSubstr("peer 'b' ha")));
    expect_complete(scan());
  }
}

TEST_F(RetiredPeersTest, StillRunningAfterIt_CostsNothing) {
  retire_b();
  for (int times = 0; times < 3; ++times) expect_complete(scan());
  EXPECT_EQ(book_.at(b_).standing, Standing::retired);
}

// It may be a member again.
TEST_F(RetiredPeersTest, RetiringWithoutARecord_IsExpected) {
  cluster_["b"].is_closed = true;
  expect_complete(scan());
  EXPECT_EQ(book_.at(b_).standing, Standing::expected);
  leave_b();
  EXPECT_FALSE(scan().complete());
}

TEST_F(RetiredPeersTest, SecondAdoptionFromALaterCycle_IsAGapOnce) {
  retire_b();
  leave_b();
  expect_complete(scan());
  adopt(b_, {last_run, {1'000}});
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'b' has retired")));
  adopt(b_, {last_run, {1'000}});
  expect_complete(scan());
}

TEST_F(RetiredPeersTest, RetirementOfAnEarlierRun_ChangesNothing) {
  cluster_.record("a", b_, last_run + 1);
  adopt(b_, {last_run, book_.at(b_).cycle});
  leave_b();
  EXPECT_FALSE(scan().complete());
  EXPECT_EQ(book_.at(b_).standing, Standing::expected);
}

TEST_F(RetiredPeersTest, Copies_AreAGap) {
  book_.at(b_).standing = Standing::copied;
  retire_b();
  leave_b();
  EXPECT_THAT(scan().gaps, ElementsAre(HasSubstr("peer 'b' has retired")));
}

// A new node may be there, and acknowledge marks.
TEST_F(RetiredPeersTest, ListedAddressSilent_IsReported) {
  retire_b();
  expect_complete(scan());
  cluster_["b"].is_down = true;
  const auto gathered = scan();
  EXPECT_FALSE(gathered.complete());
  ASSERT_THAT(gathered.peers, SizeIs(2));
  EXPECT_EQ(gathered.peers[1].error, "node 'b' has retired there: list this address no longer");
  listed_ = {"a"};
  expect_complete(scan());
}

TEST_F(RetiredPeersTest, NewInstanceOfTheName_IsReadFromItsBirth) {
  retire_b();
  start_anew("b");
  cluster_["b"].is_closed = false;
  mark("b", "bucket/new");
  const auto gathered = scan();
  expect_complete(gathered);
  EXPECT_TRUE(holds(gathered, "bucket/adopted"));
  EXPECT_TRUE(holds(gathered, "bucket/new"));
}

// --- a scan that reads its own daemon alone ---

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
