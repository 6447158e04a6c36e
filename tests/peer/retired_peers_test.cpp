// Members that retire (docs/cluster.md, "Leaving").
#include "tests/peer/known_peers_fixture.h"

namespace spoor::peer {
namespace {

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

}  // namespace
}  // namespace spoor::peer
