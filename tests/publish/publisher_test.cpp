#include <gmock/gmock.h>

#include <filesystem>

#include "scanner/errors.h"
#include "tests/publish/publisher_fixture.h"

namespace spoor::publish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST_F(PublisherTest, BeforeTheFirstScan_NothingIsPublished) {
  EXPECT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(PublisherTest, FirstTime_IsAResetAndAllThatExists) {
  make_file("a/f");
  make_directory("b");
  scan();
  EXPECT_THAT(published_events(), ElementsAre("reset", "new dir a", "new file a/f", "new dir b", "scan"));
  EXPECT_THAT(published_events(), IsEmpty()) << "nothing is published twice";
}

TEST_F(PublisherTest, WithoutExisting_OnlyTheResetIsPublished) {
  publishes_existing_ = false;
  EXPECT_THAT(begin_with({"a/f"}), ElementsAre("reset", "scan"));
  make_file("a/g");
  scan_marked({"a"});
  EXPECT_THAT(published_events(), ElementsAre("changed dir a", "new file a/g", "scan"));
}

TEST_F(PublisherTest, Changes_FollowEachScan) {
  make_directory("a/d");
  begin_with({"a/f"});
  remove("a/d");
  make_file("a/f", 20);
  make_file("c");
  scan_marked({"a", "c"});
  EXPECT_THAT(published_events(), ElementsAre("changed dir ", "new file c", "changed dir a",
                                              "changed file a/f", "deleted dir a/d", "scan"));
}

TEST_F(PublisherTest, ScanWithoutChanges_IsPassedSilently) {
  begin_with({"a/f"});
  scan();
  EXPECT_THAT(published_events(), IsEmpty());
  const auto at = scanner::Consumers::open(temp.path())->find(Publisher::consumer_of("bus"));
  EXPECT_EQ((*at)->scan, 2U);
  EXPECT_EQ((*at)->progress->until, 2U);
}

// A crash before the first batch is acknowledged, and another scan.
TEST_F(PublisherTest, EndOfARange_IsKeptBeforeItsFirstBatch) {
  begin_with({"a/f"});
  make_file("a/g");
  scan_marked({"a"});
  sink_.fails_one_in = 1;
  EXPECT_FALSE(publish(100));
  sink_.fails_one_in = 0;
  events();
  remove("a/g");
  scan_marked({"a"});
  ASSERT_TRUE(publish(100));
  std::vector<std::uint64_t> scans;
  for (const Event& event : sink_.stored)
    if (event.kind == Event::Kind::scan) scans.push_back(event.scan);
  EXPECT_THAT(scans, ElementsAre(2U, 3U));
  expect_equal_copy();
}

TEST_F(PublisherTest, SinkThatHasNothingOfTheNode_StartsOver) {
  begin_with({"a/f"});
  make_file("a/g");
  scan_marked({"a"});
  sink_.lose_everything();
  EXPECT_THAT(published_events(), ElementsAre("reset", "new dir a", "new file a/f", "new file a/g", "scan"));
  expect_equal_copy();
}

TEST_F(PublisherTest, TotalsThatCouldNotBeStored_AreStoredByTheNextAttempt) {
  sink_.has_totals = true;
  make_file("a/f");
  scan();
  Publisher publisher({.name = "bus", .cluster = "cluster", .node = "node", .data_dir = temp.path()}, sink_,
                      clock);
  const auto attempt = [&] { return publisher.publish_all([] { return false; }); };
  sink_.fails_totals = true;
  EXPECT_FALSE(attempt());
  EXPECT_EQ(events().back(), "scan") << "changes do not wait for totals";
  EXPECT_FALSE(attempt());
  sink_.fails_totals = false;
  EXPECT_TRUE(attempt());
  EXPECT_THAT(sink_.totals_of, ElementsAre(1U));
  EXPECT_TRUE(attempt());
  EXPECT_THAT(sink_.totals_of, ElementsAre(1U));
  scan();
  EXPECT_TRUE(attempt());
  EXPECT_THAT(sink_.totals_of, ElementsAre(1U, 2U)) << "also after a scan without changes";
}

TEST_F(PublisherTest, ScanWhoseRecordIsNotKept_EndsWithoutFigures) {
  begin_with({"a/f"});
  make_file("a/g");
  scan_marked({"a"});
  sink_.fails_one_in = 1;
  EXPECT_FALSE(publish());
  sink_.fails_one_in = 0;
  scan();
  database->handle().exec("DELETE FROM scans WHERE id = 2");
  ASSERT_TRUE(publish());
  EXPECT_EQ(sink_.stored.back().scan, 2U);
  EXPECT_EQ(sink_.stored.back().totals, "");
  scan();
}

// A deleted directory whose name is a file's: a consumer that deletes after the file was made would lose it.
TEST_F(PublisherTest, FileInThePlaceOfADirectory_IsReplaced) {
  begin_with({"a/x/f"});
  remove("a/x");
  make_file("a/x");
  scan_marked({"a/x"});
  EXPECT_THAT(published_events(100),
              ElementsAre("changed dir a", "new file a/x", "replaced file a/x", "scan"));
  expect_equal_copy();
}

TEST_F(PublisherTest, FailedBatch_IsPublishedAgainFromItsBeginning) {
  make_files({"a/1", "a/2", "a/3", "a/4", "a/5"});
  scan();
  int batches = 0;
  sink_.on_publish = [&] { sink_.fails_one_in = ++batches == 3 ? 1 : 0; };
  const auto published = publish();
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message, HasSubstr("the sink fails"));
  EXPECT_EQ(figures_.failures, 1U);
  EXPECT_EQ(figures_.error, published.error().message);
  events();
  EXPECT_THAT(published_events(), ElementsAre("new file a/3", "new file a/4", "new file a/5", "scan"));
  expect_equal_copy();
}

TEST_F(PublisherTest, SinkThatDefers_HasHalfABatchThatIsNotStored) {
  make_files({"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"});
  scan();
  sink_.is_deferring = true;
  std::vector<std::size_t> stored;
  sink_.on_publish = [&] { stored.push_back(sink_.stored.size()); };
  ASSERT_TRUE(publish(4));
  // The reset by itself, two parts that wait for nothing, the others for the part before the last, the end
  // for all.
  EXPECT_THAT(stored, ElementsAre(0U, 1U, 1U, 3U, 5U, 8U));
  EXPECT_EQ(figures_.events, 9U);
  EXPECT_EQ(sink_.largest_batch, 4U);
}

TEST_F(PublisherTest, SinkThatDefers_AfterAFailure_GetsBothHalvesAgain) {
  make_files({"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"});
  scan();
  sink_.is_deferring = true;
  int calls = 0;
  sink_.on_publish = [&] { sink_.fails_one_in = ++calls == 4 ? 1 : 0; };
  EXPECT_FALSE(publish(4));
  events();
  EXPECT_THAT(published_events(4), ElementsAre("new file a/2", "new file a/3", "new file a/4", "new file a/5",
                                               "new file a/6", "scan"));
  expect_equal_copy();
}

TEST_F(PublisherTest, SinkThatDefers_HasNoSuccessBeforeItHasStored) {
  make_file("a/1");
  scan();
  sink_.is_deferring = true;
  const auto reset_at = clock.wall_now();
  int calls = 0;
  sink_.on_publish = [&] {
    if (++calls == 1) return;
    sink_.fails_settling = true;
    clock.advance(std::chrono::seconds(1));
  };
  EXPECT_FALSE(publish(100));
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(figures_.last_success, reset_at);
  EXPECT_EQ(figures_.events, 1U);
}

TEST_F(PublisherTest, SinkThatDefers_StopsWithNothingOnItsWay) {
  make_files({"a/1", "a/2", "a/3", "a/4", "a/5"});
  scan();
  sink_.is_deferring = true;
  int calls = 0;
  sink_.on_publish = [&] { stops_ = ++calls == 3; };
  EXPECT_THAT(published_events(4),
              ElementsAre("reset", "new dir a", "new file a/1", "new file a/2", "new file a/3"));
  go_on();
  EXPECT_THAT(published_events(4), ElementsAre("new file a/4", "new file a/5", "scan"));
}

TEST_F(PublisherTest, ChangesThatAreNotKept_AreAReset) {
  begin_with({"a/f"});
  remove("a");
  make_file("b/f");
  forget();
  scan_marked({"a", "b"});
  EXPECT_THAT(published_events(), ElementsAre("reset", "new dir b", "new file b/f", "scan"));
  EXPECT_EQ(figures_.resets, 1U);
  expect_equal_copy();
}

// Each read of the feed holds a transaction open.
TEST_F(PublisherTest, LongRange_IsReadInSeveralTransactions) {
  make_many();
  scan();
  sink_.on_publish = [&] { clock.advance(std::chrono::seconds(1)); };
  ASSERT_TRUE(publish(3, std::chrono::seconds(2)));
  expect_equal_copy();
  EXPECT_EQ(sink_.stored.size(), 1U + 100U + 1U) << "none twice";
}

TEST_F(PublisherTest, Stop_EndsSoonAndLosesNothing) {
  make_many();
  scan();
  stops_ = true;
  EXPECT_THAT(published_events(), IsEmpty());
  stops_ = false;
  ASSERT_TRUE(publish());
  expect_equal_copy();
}

TEST_F(PublisherTest, StopDuringABatch_EndsAfterIt) {
  make_many();
  scan();
  sink_.on_publish = [&] { stops_ = sink_.stored.size() > 1; };
  ASSERT_TRUE(publish());
  EXPECT_LE(sink_.stored.size(), 1U + 3U + 3U);
  go_on();
  ASSERT_TRUE(publish());
  expect_equal_copy();
}

// What was set up anew is told everything.
TEST_F(PublisherTest, ForgottenDuringABatch_StartsOver) {
  begin_with({"a/f"});
  make_file("b/f");
  scan_marked({"b"});
  sink_.on_publish = [this] {
    forget();
    sink_.on_publish = [] {};
  };
  EXPECT_THAT(published_events(),
              ElementsAre("changed dir ", "new dir b", "new file b/f", "reset", "new dir a", "new file a/f",
                          "new dir b", "new file b/f", "scan"));
}

TEST_F(PublisherTest, StopDuringTheLastBatch_EndsBeforeTheEndOfTheScan) {
  make_file("a/f");
  scan();
  sink_.on_publish = [&] { stops_ = !sink_.stored.empty(); };
  EXPECT_THAT(published_events(100), ElementsAre("reset", "new dir a", "new file a/f"));
  go_on();
  EXPECT_THAT(published_events(100), ElementsAre("scan"));
}

// What is published again does not count.
TEST_F(PublisherTest, CursorNotStored_EventsAreNotCounted) {
  for (int i = 0; i < 10; ++i) make_file("a" + std::to_string(i) + "/f");
  scan();
  sink_.on_publish = [this] { fail_commits(sink_.stored.size() > 1); };
  EXPECT_FALSE(publish());
  EXPECT_EQ(figures_.events, 1U + 3U) << "the reset and a batch";
}

// Directories alone.
TEST_F(PublisherTest, WithoutFiles_DirectoriesArePublished) {
  options.file_feed = false;
  EXPECT_THAT(begin_with({"a/f"}), ElementsAre("reset", "new dir a", "scan"));
  make_file("a/g");
  scan_marked({"a"});
  EXPECT_THAT(published_events(), ElementsAre("changed dir a", "scan"));
}

TEST_F(PublisherTest, FileFeedTurnedOn_IsAReset) {
  options.file_feed = false;
  begin_with({"a/f"});
  options.file_feed = true;
  scan();
  EXPECT_THAT(published_events(), ElementsAre("reset", "new dir a", "new file a/f", "scan"));
}

// What was deleted meanwhile is not known.
TEST_F(PublisherTest, FileFeedTurnedOff_IsAReset) {
  begin_with({"a/f"});
  remove("a/f");
  scan_marked({"a"});
  options.file_feed = false;
  scan();
  EXPECT_THAT(published_events(), ElementsAre("reset", "new dir a", "scan"));
  EXPECT_THAT(published_events(), IsEmpty());
}

// Between a reset without what exists and the first changes after it.
TEST_F(PublisherTest, FileFeedTurnedOff_AfterAResetWithoutExisting_IsAReset) {
  publishes_existing_ = false;
  EXPECT_THAT(begin_with({"a/f"}), ElementsAre("reset", "scan"));
  remove("a/f");
  scan_marked({"a"});
  options.file_feed = false;
  scan();
  EXPECT_THAT(published_events(), ElementsAre("reset", "scan"));
}

class TwoDrivesPublisherTest : public PublisherTest {
 protected:
  TwoDrivesPublisherTest() : PublisherTest({"one", "two"}) {}
};

// The deletion, "with all that was below it", would delete the directory.
TEST_F(TwoDrivesPublisherTest, DeletedFileWhereAnotherDriveHasADirectory_IsNotDeleted) {
  make_file("a/x");
  std::filesystem::create_directories(on_drive("a/x", 1));
  scanner::write_file(on_drive("a/x/f", 1), 1);
  scan();
  ASSERT_TRUE(publish(100));
  events();
  remove("a/x");
  scan_marked({"a"});
  ASSERT_TRUE(publish(100));
  EXPECT_THAT(events(), testing::Not(testing::Contains("deleted file a/x")));
  EXPECT_TRUE(sink_.copy.tree().contains("a/x/f"));
}

}  // namespace
}  // namespace spoor::publish
