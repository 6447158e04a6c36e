#include "publish/publisher.h"

#include <SQLiteCpp/Database.h>
#include <gmock/gmock.h>

#include <filesystem>

#include "scanner/errors.h"
#include "scanner/store/checksum_vfs.h"
#include "tests/publish/model_sink.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tracker/paths/path.h"

namespace spoor::publish {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class PublisherTest : public scanner::ScannedNode {
 protected:
  explicit PublisherTest(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {
    options.file_feed = true;
  }

  // As after a restart of the process.
  base::Result<> publish(std::size_t batch = 3, std::chrono::seconds read_max = std::chrono::seconds(60)) {
    Publisher publisher({.name = "bus",
                         .cluster = "cluster",
                         .node = "node",
                         .data_dir = temp.path(),
                         .batch_events_max = batch,
                         .publishes_existing = publishes_existing_,
                         .read_max = read_max},
                        sink_, clock);
    auto published = publisher.publish_all([this] { return stops_; });
    figures_ = publisher.figures();
    return published;
  }

  void forget() { scanner::Consumers::open(temp.path())->forget(Publisher::consumer_of("bus")).value(); }

  // Of the cursor.
  void fail_commits(bool fail) {
    SQLite::Database database(temp / "consumers.db", SQLite::OPEN_READWRITE, 0, scanner::checksum_vfs());
    database.exec("DROP TRIGGER IF EXISTS fail");
    if (fail)
      database.exec(
          "CREATE TRIGGER fail BEFORE INSERT ON progress BEGIN SELECT RAISE(ABORT, 'no commit'); END");
  }

  // What is on the drive.
  Tree source_tree() const {
    Tree tree;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(drive())) {
      const std::string path = entry.path().lexically_relative(drive()).native();
      if (!path.starts_with(".spoor")) tree[path] = !entry.is_directory();
    }
    return tree;
  }

  // "new dir a", of what was stored since the last call.
  std::vector<std::string> events() {
    std::vector<std::string> lines;
    for (const Event& event : sink_.stored) {
      std::string line = name_of(event.kind);
      if (event.kind != Event::Kind::reset && event.kind != Event::Kind::scan)
        line += (event.is_file ? " file " : " dir ") + event.path;
      lines.push_back(line);
    }
    sink_.stored.clear();
    return lines;
  }

  support::Random random_;
  ModelSink sink_{random_.fork()};
  scanner::SinkFigures figures_;
  bool publishes_existing_ = true;
  bool stops_ = false;
};

TEST_F(PublisherTest, BeforeTheFirstScan_NothingIsPublished) {
  EXPECT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty());
}

TEST_F(PublisherTest, FirstTime_IsAResetAndAllThatExists) {
  make_file("a/f");
  make_directory("b");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "new file a/f", "new dir b", "scan"));
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty()) << "nothing is published twice";
}

TEST_F(PublisherTest, WithoutExisting_OnlyTheResetIsPublished) {
  publishes_existing_ = false;
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "scan"));
  make_file("a/g");
  mark("a");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("changed dir a", "new file a/g", "scan"));
}

TEST_F(PublisherTest, Changes_FollowEachScan) {
  make_file("a/f");
  make_directory("a/d");
  scan();
  ASSERT_TRUE(publish());
  events();
  remove("a/d");
  make_file("a/f", 20);
  make_file("c");
  mark("a");
  mark("c");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("changed dir ", "new file c", "changed dir a", "changed file a/f",
                                    "deleted dir a/d", "scan"));
}

TEST_F(PublisherTest, ScanWithoutChanges_IsPassedSilently) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty());
  const auto at = scanner::Consumers::open(temp.path())->find(Publisher::consumer_of("bus"));
  EXPECT_EQ((*at)->scan, 2U);
  EXPECT_EQ((*at)->progress->until, 2U);
}

// A crash before the first batch is acknowledged, and another scan.
TEST_F(PublisherTest, EndOfARange_IsKeptBeforeItsFirstBatch) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  make_file("a/g");
  mark("a");
  scan();
  sink_.fails_one_in = 1;
  EXPECT_FALSE(publish(100));
  sink_.fails_one_in = 0;
  events();
  remove("a/g");
  mark("a");
  scan();
  ASSERT_TRUE(publish(100));
  std::vector<std::uint64_t> scans;
  for (const Event& event : sink_.stored)
    if (event.kind == Event::Kind::scan) scans.push_back(event.scan);
  EXPECT_THAT(scans, ElementsAre(2U, 3U));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

TEST_F(PublisherTest, SinkThatHasNothingOfTheNode_StartsOver) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  make_file("a/g");
  mark("a");
  scan();
  sink_.lose_everything();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "new file a/f", "new file a/g", "scan"));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
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
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  make_file("a/g");
  mark("a");
  scan();
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
  make_file("a/x/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  remove("a/x");
  make_file("a/x");
  mark("a/x");
  scan();
  ASSERT_TRUE(publish(100));
  EXPECT_THAT(events(), ElementsAre("changed dir a", "new file a/x", "replaced file a/x", "scan"));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

TEST_F(PublisherTest, FailedBatch_IsPublishedAgainFromItsBeginning) {
  for (const char* path : {"a/1", "a/2", "a/3", "a/4", "a/5"}) make_file(path);
  scan();
  int batches = 0;
  sink_.on_publish = [&] { sink_.fails_one_in = ++batches == 3 ? 1 : 0; };
  const auto published = publish();
  ASSERT_FALSE(published);
  EXPECT_THAT(published.error().message, HasSubstr("the sink fails"));
  EXPECT_EQ(figures_.failures, 1U);
  EXPECT_EQ(figures_.error, published.error().message);
  events();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("new file a/3", "new file a/4", "new file a/5", "scan"));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

TEST_F(PublisherTest, SinkThatDefers_HasHalfABatchThatIsNotStored) {
  for (const char* path : {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}) make_file(path);
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
  for (const char* path : {"a/1", "a/2", "a/3", "a/4", "a/5", "a/6"}) make_file(path);
  scan();
  sink_.is_deferring = true;
  int calls = 0;
  sink_.on_publish = [&] { sink_.fails_one_in = ++calls == 4 ? 1 : 0; };
  EXPECT_FALSE(publish(4));
  events();
  ASSERT_TRUE(publish(4));
  EXPECT_THAT(events(), ElementsAre("new file a/2", "new file a/3", "new file a/4", "new file a/5",
                                    "new file a/6", "scan"));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
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
  for (const char* path : {"a/1", "a/2", "a/3", "a/4", "a/5"}) make_file(path);
  scan();
  sink_.is_deferring = true;
  int calls = 0;
  sink_.on_publish = [&] { stops_ = ++calls == 3; };
  ASSERT_TRUE(publish(4));
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "new file a/1", "new file a/2", "new file a/3"));
  stops_ = false;
  sink_.on_publish = [] {};
  ASSERT_TRUE(publish(4));
  EXPECT_THAT(events(), ElementsAre("new file a/4", "new file a/5", "scan"));
}

TEST_F(PublisherTest, ChangesThatAreNotKept_AreAReset) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  remove("a");
  make_file("b/f");
  forget();
  mark("a");
  mark("b");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir b", "new file b/f", "scan"));
  EXPECT_EQ(figures_.resets, 1U);
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

// Each read of the feed holds a transaction open.
TEST_F(PublisherTest, LongRange_IsReadInSeveralTransactions) {
  for (int i = 0; i < 50; ++i) make_file("a" + std::to_string(i) + "/f");
  scan();
  sink_.on_publish = [&] { clock.advance(std::chrono::seconds(1)); };
  ASSERT_TRUE(publish(3, std::chrono::seconds(2)));
  EXPECT_EQ(sink_.copy.tree(), source_tree());
  EXPECT_EQ(sink_.stored.size(), 1U + 100U + 1U) << "none twice";
}

TEST_F(PublisherTest, Stop_EndsSoonAndLosesNothing) {
  for (int i = 0; i < 50; ++i) make_file("a" + std::to_string(i) + "/f");
  scan();
  stops_ = true;
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty());
  stops_ = false;
  ASSERT_TRUE(publish());
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

TEST_F(PublisherTest, StopDuringABatch_EndsAfterIt) {
  for (int i = 0; i < 50; ++i) make_file("a" + std::to_string(i) + "/f");
  scan();
  sink_.on_publish = [&] { stops_ = sink_.stored.size() > 1; };
  ASSERT_TRUE(publish());
  EXPECT_LE(sink_.stored.size(), 1U + 3U + 3U);
  stops_ = false;
  sink_.on_publish = [] {};
  ASSERT_TRUE(publish());
  EXPECT_EQ(sink_.copy.tree(), source_tree());
}

// What was set up anew is told everything.
TEST_F(PublisherTest, ForgottenDuringABatch_StartsOver) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  make_file("b/f");
  mark("b");
  scan();
  events();
  sink_.on_publish = [this] {
    forget();
    sink_.on_publish = [] {};
  };
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("changed dir ", "new dir b", "new file b/f", "reset", "new dir a",
                                    "new file a/f", "new dir b", "new file b/f", "scan"));
}

TEST_F(PublisherTest, StopDuringTheLastBatch_EndsBeforeTheEndOfTheScan) {
  make_file("a/f");
  scan();
  sink_.on_publish = [&] { stops_ = !sink_.stored.empty(); };
  ASSERT_TRUE(publish(100));
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "new file a/f"));
  stops_ = false;
  sink_.on_publish = [] {};
  ASSERT_TRUE(publish(100));
  EXPECT_THAT(events(), ElementsAre("scan"));
}

// What is published again does not count.
TEST_F(PublisherTest, CursorNotStored_EventsAreNotCounted) {
  for (int i = 0; i < 10; ++i) make_file("a" + std::to_string(i) + "/f");
  scan();
  sink_.on_publish = [this] { fail_commits(sink_.stored.size() > 1); };
  EXPECT_FALSE(publish());
  EXPECT_EQ(figures_.events, 1U + 3U) << "the reset and a batch";
}

// A sink that takes a request for each event, as many webhooks do.
class RequestsPublisherTest : public PublisherTest {
 protected:
  RequestsPublisherTest() {
    for (int i = 0; i < 50; ++i) make_file("a" + std::to_string(i) + "/f");
    scan();
    sink_.request_max = 1;
  }

  void expect_the_rest_follows(std::size_t repetitions) {
    stops_ = false;
    sink_.fails_one_in = 0;
    sink_.on_publish = [] {};
    ASSERT_TRUE(publish(100));
    EXPECT_EQ(sink_.copy.tree(), source_tree());
    EXPECT_LE(sink_.stored.size(), 1U + 100U + 1U + repetitions);
  }
};

TEST_F(RequestsPublisherTest, FailedRequest_AloneIsRepeated) {
  sink_.on_publish = [&] { sink_.fails_one_in = sink_.stored.size() > 30 ? 1 : 0; };
  ASSERT_FALSE(publish(100));
  EXPECT_GT(figures_.events, 30U);
  expect_the_rest_follows(1);
}

TEST_F(RequestsPublisherTest, Stop_EndsAfterTheRequest) {
  sink_.on_publish = [&] { stops_ = sink_.stored.size() == 30; };
  ASSERT_TRUE(publish(60));
  EXPECT_EQ(sink_.stored.size(), 31U);
  expect_the_rest_follows(0);
}

TEST_F(RequestsPublisherTest, LongRead_EndsAfterTheRequest) {
  std::optional<std::string> passed;
  sink_.on_publish = [&] {
    clock.advance(std::chrono::seconds(1));
    if (sink_.stored.size() != 20) return;
    passed =
        scanner::Consumers::open(temp.path())->find(Publisher::consumer_of("bus")).value()->progress->after;
  };
  ASSERT_TRUE(publish(100, std::chrono::seconds(7)));
  EXPECT_THAT(passed, testing::Optional(testing::Ne("")));
  expect_the_rest_follows(0);
}

class CutPublisherTest : public PublisherTest, public testing::WithParamInterface<std::vector<std::string>> {
 protected:
  CutPublisherTest() : PublisherTest(GetParam()) {
    for (const char* path : {"a/f", "b/x/f", "b/y/z/f", "c/q/f", "e/1", "e/s/2", "m.d/f", "m/f", "top"})
      write(path);
    scan();
  }

  // On the last drive, so that of two, one keeps what the other loses.
  void write(const std::string& path, std::size_t bytes = 10) {
    scanner::write_file(on_drive(path, GetParam().size() - 1), bytes);
  }
  void remove_from_last(const std::string& path) {
    std::filesystem::remove_all(on_drive(path, GetParam().size() - 1));
  }

  // The read ends behind each request, of any size, and goes on: as if it had not ended.
  void expect_same_events_if_cut_anywhere() {
    const auto cursor = temp / "consumers.db";
    std::filesystem::copy_file(cursor, temp / "before");
    events();
    ASSERT_TRUE(publish(100));
    const auto whole = events();
    ASSERT_GT(whole.size(), 9U);
    for (std::size_t cut = 1; cut <= 3 * whole.size(); ++cut) {
      std::filesystem::copy_file(temp / "before", cursor, std::filesystem::copy_options::overwrite_existing);
      sink_.request_max = 1 + cut % 3;
      sink_.on_publish = [&] { stops_ = sink_.stored.size() + sink_.request_max > cut / 3; };
      ASSERT_TRUE(publish(100));
      stops_ = false;
      sink_.on_publish = [] {};
      ASSERT_TRUE(publish(100));
      EXPECT_EQ(events(), whole) << cut;
    }
  }
};

TEST_P(CutPublisherTest, Changes_GoOnBehindAnyRequest) {
  ASSERT_TRUE(publish());
  for (const char* path : {"b", "c", "e/s", "m/f"}) remove_from_last(path);
  for (const char* path : {"a-/f", "a/g", "b", "c/v", "c/w/f", "e/3", "e/s", "m/f/g", "zoo"}) write(path);
  write("e/1", 20);
  write("top", 20);
  make_file("e/first");
  for (const char* path : {"", "a", "a-", "b", "c", "c/w", "e", "m"}) mark(path, tracker::MarkKind::tree);
  scan();
  expect_same_events_if_cut_anywhere();
}

TEST_P(CutPublisherTest, EverythingAfterAReset_GoesOnBehindAnyRequest) {
  sink_.on_publish = [&] { stops_ = true; };
  ASSERT_TRUE(publish(100));
  stops_ = false;
  sink_.on_publish = [] {};
  expect_same_events_if_cut_anywhere();
}

INSTANTIATE_TEST_SUITE_P(Drives, CutPublisherTest,
                         testing::Values(std::vector<std::string>{"one"},
                                         std::vector<std::string>{"one", "two"}),
                         [](const auto& test) { return test.param.back(); });

// Directories alone.
TEST_F(PublisherTest, WithoutFiles_DirectoriesArePublished) {
  options.file_feed = false;
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "scan"));
  make_file("a/g");
  mark("a");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("changed dir a", "scan"));
}

TEST_F(PublisherTest, FileFeedTurnedOn_IsAReset) {
  options.file_feed = false;
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  options.file_feed = true;
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "new file a/f", "scan"));
}

// What was deleted meanwhile is not known.
TEST_F(PublisherTest, FileFeedTurnedOff_IsAReset) {
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  events();
  remove("a/f");
  mark("a");
  scan();
  options.file_feed = false;
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "new dir a", "scan"));
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), IsEmpty());
}

// Between a reset without what exists and the first changes after it.
TEST_F(PublisherTest, FileFeedTurnedOff_AfterAResetWithoutExisting_IsAReset) {
  publishes_existing_ = false;
  make_file("a/f");
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "scan"));
  remove("a/f");
  mark("a");
  scan();
  options.file_feed = false;
  scan();
  ASSERT_TRUE(publish());
  EXPECT_THAT(events(), ElementsAre("reset", "scan"));
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
  mark("a");
  scan();
  ASSERT_TRUE(publish(100));
  EXPECT_THAT(events(), testing::Not(testing::Contains("deleted file a/x")));
  EXPECT_TRUE(sink_.copy.tree().contains("a/x/f"));
}

// Any changes, any failures of the sink and the process, scans in between: a consumer that applies the events
// in the order in which the sink stored them has the tree.
class RandomPublisherTest : public PublisherTest, public testing::WithParamInterface<bool> {
 protected:
  static constexpr int rounds = support::is_sanitized ? 40 : 150;

  std::string any_path() {
    std::string path = random_.letters(1, 'c');
    while (path.size() < 5 && !random_.one_in(3)) path += '/' + random_.letters(1, 'c');
    return path;
  }

  void remove_if_there(const std::string& path) {
    std::error_code error;
    if (!std::filesystem::remove(on_drive(path), error)) std::filesystem::remove_all(on_drive(path), error);
  }

  // A path whose parents are directories.
  void make(const std::string& path, bool is_file) {
    const auto parent = on_drive(std::string(tracker::parent_path(path)));
    for (auto at = on_drive(path); at != drive(); at = at.parent_path())
      if (std::error_code error; std::filesystem::is_regular_file(at, error)) std::filesystem::remove(at);
    std::filesystem::create_directories(parent);
    if (is_file) {
      remove_if_there(path);
      make_file(path, random_.below(100));
    } else {
      if (random_.one_in(2)) remove_if_there(path);
      make_directory(path);
    }
  }

  void change() {
    const std::string path = any_path();
    switch (random_.below(4)) {
      case 0:
        remove_if_there(path);
        break;
      case 1:
        make(path, false);
        break;
      default:
        make(path, true);
    }
    mark(path);
    if (!random_.one_in(4)) return;
    const std::string other = any_path();
    if (other.starts_with(path) || path.starts_with(other)) return;
    make(other, false);
    remove_if_there(other);
    mark(other);
    if (!std::filesystem::exists(on_drive(path))) return;
    rename(path, other);
    mark(other, tracker::MarkKind::tree);
    mark(path);
  }

  void change_and_scan() {
    for (std::uint64_t count = random_.below(8); count > 0; --count) change();
    scan();
  }
};

TEST_P(RandomPublisherTest, CopyMadeOfTheEvents_IsTheSource) {
  sink_.drops_repetitions = GetParam();
  sink_.fails_one_in = 4;
  std::size_t batch = 0;
  int scans_between = 5;  // each waits a second for the reader of the feed
  for (int round = 0; round < rounds; ++round) {
    change_and_scan();
    sink_.on_publish = [&] {
      if (random_.one_in(20)) fail_commits(true);
      if (scans_between == 0 || !random_.one_in(10)) return;
      --scans_between;
      change_and_scan();
    };
    if (random_.one_in(15)) forget();
    if (!sink_.has_deferred()) {
      batch = random_.between(1, 12);
      sink_.is_deferring = random_.one_in(2);
      sink_.request_max = random_.between(1, batch);
    }
    sink_.largest_batch = 0;
    const auto published = publish(batch, std::chrono::seconds(random_.below(3)));
    fail_commits(false);
    if (published || random_.one_in(3)) {
      sink_.on_publish = [] {};
      while (!publish(batch)) continue;
      ASSERT_EQ(sink_.copy.tree(), source_tree()) << "round " << round;
      ASSERT_EQ(sink_.late_proof.tree(), source_tree()) << "round " << round;
      // Of the same scan: what was published is published again, as other events.
      if (random_.one_in(10)) forget();
      while (!publish(batch)) continue;
      ASSERT_EQ(sink_.copy.tree(), source_tree()) << "round " << round;
      ASSERT_EQ(sink_.late_proof.tree(), source_tree()) << "round " << round;
    }
    ASSERT_LE(sink_.largest_batch, batch);
    sink_.stored.clear();
  }
}

INSTANTIATE_TEST_SUITE_P(Sinks, RandomPublisherTest, testing::Bool(), [](const auto& test) {
  return std::string(test.param ? "WithoutRepetitions" : "WithRepetitions");
});

}  // namespace
}  // namespace spoor::publish
