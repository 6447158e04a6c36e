#include "scanner/feed/change_feed.h"

#include <gmock/gmock.h>
#include <sqlite3.h>

#include <fstream>

#include "scanner/database/checksum_vfs.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/consumers.h"
#include "tests/scanner/feed_node.h"
#include "tests/support/sanitizer.h"

namespace spoor::scanner {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ChangeFeedTest : public FeedNode {
 protected:
  explicit ChangeFeedTest(std::vector<std::string> drives = {"drive"}) : FeedNode(std::move(drives)) {}

  Lines feed(std::uint64_t since, std::optional<std::uint64_t> until = {}) {
    return FeedNode::feed({.since = since, .until = until});
  }

  std::uint64_t entries_kept() {
    return static_cast<std::uint64_t>(database->handle().number("SELECT count(*) FROM changes"));
  }

  // A change and a scan that finds it.
  std::uint64_t change_and_scan() {
    make_file("a/f" + std::to_string(++files_));
    mark("a");
    return scan().record.id;
  }

  int files_ = 0;
};

class TwoDrivesFeedTest : public ChangeFeedTest {
 protected:
  TwoDrivesFeedTest() : ChangeFeedTest({"one", "two"}) {}
};

TEST_F(ChangeFeedTest, FirstScan_KeepsNoChanges) {
  EXPECT_THAT(feed(0), ElementsAre("gone"));
  make_file("a/b/file");
  scan();
  EXPECT_THAT(feed(0), ElementsAre("gone"));
  EXPECT_THAT(feed(1), IsEmpty());
  EXPECT_THAT(feed(2), ElementsAre("gone")) << "there was no such scan yet";
  EXPECT_EQ(entries_kept(), 0U);
}

TEST_F(ChangeFeedTest, MarkedDirectories_OnlyRealChangesAreListed) {
  make_file("a/b/file");
  make_file("a/c/file");
  make_directory("quiet");
  scan();
  make_file("a/b/more");
  make_file("a/d/e/file");
  remove("a/c");
  for (const char* path : {"a/b", "a/c", "a/d/e", "quiet"}) mark(path);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "~ a/b", "- a/c", "+ a/d", "+ a/d/e"));
  EXPECT_THAT(feed(2), IsEmpty());
  scan_everything();
  EXPECT_THAT(feed(2), IsEmpty()) << "a full walk finds nothing else";
}

TEST_F(ChangeFeedTest, SeveralScans_AreMergedIntoOneChange) {
  make_directory("a");
  scan();
  make_file("a/x/file");
  mark("a/x");
  scan();
  make_file("a/x/more");
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "+ a/x"));
  EXPECT_THAT(feed(2), ElementsAre("~ a/x"));
  EXPECT_THAT(feed(1, 2), ElementsAre("~ a", "+ a/x"));
  remove("a/x");
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x"));
  make_file("a/x/file");
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x", "+ a/x"));
}

TEST_F(ChangeFeedTest, ReplacedDirectory_IsListedAsDeletedAndNew) {
  make_file("a/x/old/file");
  make_file("a/y/file");
  scan();
  remove("a/x");
  rename("a/y", "a/x");
  for (const char* path : {"a/x", "a/y"}) mark(path, tracker::MarkKind::tree);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x", "+ a/x", "- a/y"));
}

TEST_F(ChangeFeedTest, InterruptedScan_RecordsNoChanges) {
  make_directory("a");
  scan();
  make_file("a/file");
  mark("a");
  stop.request_stop();
  EXPECT_FALSE(try_scan());
  stop = {};
  EXPECT_EQ(entries_kept(), 0U);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a"));
}

TEST_F(TwoDrivesFeedTest, PathRemoved_IsDeletedOnceNoDriveHasIt) {
  for (const std::size_t number : {0U, 1U}) std::filesystem::create_directories(on_drive("a/x", number));
  scan();
  std::filesystem::remove(on_drive("a/x", 0));
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x", "+ a/x"));
  std::filesystem::remove(on_drive("a/x", 1));
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x"));
}

TEST_F(TwoDrivesFeedTest, RemovedFromOneDrive_OtherDrivesSubtreeIsListedAsNew) {
  std::filesystem::create_directories(on_drive("a/x/only-here", 0));
  for (const char* path : {"a/x/kept/deep", "a/x-ray"})
    std::filesystem::create_directories(on_drive(path, 1));
  scan();
  std::filesystem::remove_all(on_drive("a/x", 0));
  std::filesystem::create_directory(on_drive("a/x/fresh", 1));
  std::filesystem::create_directory(on_drive("a/x-ray/fresh", 1));
  for (const char* path : {"a/x", "a/x/fresh", "a/x-ray/fresh"}) mark(path);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a", "- a/x", "+ a/x", "+ a/x/fresh", "+ a/x/kept", "+ a/x/kept/deep",
                                   "~ a/x-ray", "+ a/x-ray/fresh"));
}

TEST_F(ChangeFeedTest, Entries_AreInWalkOrder) {
  make_directory("a");
  scan();
  for (const char* path : {"a/b/c", "a/b-1", "a/b0", "a/b\xff/x", "a/b\x01"}) {
    make_directory(path);
    mark(path);
  }
  make_file("top");
  mark("top", tracker::MarkKind::file);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ ", "~ a", "+ a/b", "+ a/b/c", "+ a/b\x01", "+ a/b-1", "+ a/b0",
                                   "+ a/b\xff", "+ a/b\xff/x"));
}

TEST_F(TwoDrivesFeedTest, WholeTreeInPages_ScanCommitsBetweenPages_IsConsistent) {
  make_file("a/x/only-here/file");
  for (const char* path : {"a/x/b/deep", "a/x/c", "a/x/d", "a/y"})
    std::filesystem::create_directories(on_drive(path, 1));
  scan();
  std::filesystem::remove_all(on_drive("a/x", 0));
  std::filesystem::create_directory(on_drive("a/y/fresh", 1));
  for (const char* path : {"a/x", "a/y/fresh"}) mark(path);
  scan();
  FeedRange range{.since = 1, .until = 2};
  std::vector<std::string> lines;
  ASSERT_TRUE(read_part(range, 3, lines));
  EXPECT_EQ(range.after, "a/x/b");
  std::filesystem::remove_all(on_drive("a/x/c", 1));
  std::filesystem::create_directory(on_drive("a/x/aa", 1));
  for (const char* path : {"a/x/c", "a/x/aa"}) mark(path);
  scan();
  ASSERT_TRUE(read_part(range, 100, lines));
  EXPECT_THAT(lines, ElementsAre("~ a", "- a/x", "+ a/x", "+ a/x/b", "+ a/x/b/deep", "+ a/x/d", "~ a/y",
                                 "+ a/y/fresh"));
  EXPECT_THAT(feed(2), ElementsAre("~ a/x", "+ a/x/aa", "- a/x/c")) << "what came between the parts";
}

// Neither the names before it nor those behind it are read with a page.
TEST_F(TwoDrivesFeedTest, WideTreeInPages_OnlyRequestedPageIsRead) {
  std::filesystem::create_directories(on_drive("a/x", 0));
  for (int number = 10'000; number < 18'000; ++number)
    std::filesystem::create_directories(on_drive("a/x/" + std::to_string(number), 1));
  scan();
  std::filesystem::remove(on_drive("a/x", 0));
  mark("a/x");
  scan();
  for (const char* after : {"a/x", "a/x/10000", "a/x/17000"}) {
    std::vector<std::string> paths;
    int asked = 0;  // each some thousand steps of the database
    const auto on_entry = [&](const FeedEntry& entry) {
      paths.push_back(entry.path);
      return paths.size() < 2;
    };
    ASSERT_TRUE(read_changes(*database, {.since = 1, .after = after}, on_entry, [&] {
      ++asked;
      return false;
    }));
    const int first = std::string(after) == "a/x" ? 10'000 : std::stoi(after + 4) + 1;
    EXPECT_THAT(paths, ElementsAre("a/x/" + std::to_string(first), "a/x/" + std::to_string(first + 1)));
    EXPECT_LT(asked, 10);
  }
}

TEST_F(ChangeFeedTest, StopRequested_ReadingIsInterrupted) {
  make_directory("a");
  scan();
  change_and_scan();
  const auto ignore = [](const FeedEntry&) { return true; };
  EXPECT_EQ(read_changes(*database, {.since = 1}, ignore, [] { return true; }).error().code,
            Errc::interrupted);
  database->handle().exec(
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 50000) "
      "INSERT INTO changes SELECT 2, 1, CAST('x' || i AS BLOB), 2 FROM n");
  int times = 0;
  const auto amid = [&times] { return ++times == 3; };
  EXPECT_EQ(read_changes(*database, {.since = 1}, ignore, amid).error().code, Errc::interrupted);
  EXPECT_TRUE(read_changes(*database, {.since = 1}, ignore)) << "it goes on";
}

TEST_F(TwoDrivesFeedTest, DriveAddedOrRemoved_FeedStartsOver) {
  make_file("a/file");
  scan();
  change_and_scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a"));
  const Drive second = options.drives.back();
  options.drives.pop_back();
  const std::uint64_t without = scan().record.id;
  EXPECT_THAT(feed(without - 1), ElementsAre("gone"));
  EXPECT_THAT(feed(without), IsEmpty());
  options.drives.push_back(second);
  const std::uint64_t with = scan().record.id;
  EXPECT_THAT(feed(with - 1), ElementsAre("gone"));
  EXPECT_THAT(feed(with), IsEmpty());
  change_and_scan();
  EXPECT_THAT(feed(with), ElementsAre("~ a"));
}

TEST_F(ChangeFeedTest, Retention_KeepsSixteenScansAndUnreadChanges) {
  make_file("a/file");
  scan();
  options.oldest_unread = 3;
  std::uint64_t last = 0;
  for (int count = 0; count < 30; ++count) last = change_and_scan();
  EXPECT_THAT(feed(2), ElementsAre("~ a"));
  EXPECT_THAT(feed(1), ElementsAre("gone"));
  options.oldest_unread.reset();
  last = change_and_scan();
  EXPECT_THAT(feed(last - ChangeLog::scans_kept), ElementsAre("~ a"));
  EXPECT_THAT(feed(last - ChangeLog::scans_kept - 1), ElementsAre("gone"));
  EXPECT_EQ(entries_kept(), ChangeLog::scans_kept);
}

TEST_F(ChangeFeedTest, ConsumerNeverReads_KeptChangesAreBounded) {
  make_file("a/file");
  scan();
  options.oldest_unread = 2;
  options.changes_kept_max = 20;
  std::uint64_t last = 0;
  for (int count = 0; count < 40; ++count) last = change_and_scan();
  EXPECT_EQ(entries_kept(), 20U);
  EXPECT_THAT(feed(last - 20), ElementsAre("~ a"));
  EXPECT_THAT(feed(last - 21), ElementsAre("gone"));
  options.changes_kept_max = 1;
  last = change_and_scan();
  EXPECT_EQ(entries_kept(), ChangeLog::scans_kept) << "those are kept whatever they take";
}

// Whoever reads may be paused, for as long as it likes: scans go on, and can empty their log.
TEST_F(ChangeFeedTest, PausedPageReader_DoesNotBlockWalCheckpoint) {
  scan();
  for (int number = 0; number < 20; ++number) make_file("a/" + std::to_string(number) + "/file");
  mark("a", tracker::MarkKind::tree);
  scan();
  const std::vector<std::string> all = feed(1);
  auto reading = UsageDatabase::open_read_only(file()).value();
  std::vector<std::string> lines;
  std::uint64_t number = 0;
  const auto until =
      read_changes_in_pages(reading, {.since = 1}, 3 * sizeof(FeedEntry), [&](const FeedEntry& entry) {
        lines.push_back((entry.is_new ? "+ " : "~ ") + entry.path);
        if (number++ % 5 == 0) {
          make_file("later/" + std::to_string(number));
          mark("later");
          scan();
          database->empty_log();
          EXPECT_EQ(std::filesystem::file_size(temp / "scan.db-wal"), 0U);
        }
        return true;
      });
  ASSERT_TRUE(until);
  EXPECT_EQ(*until, 2U) << "what comes meanwhile is told next time";
  EXPECT_EQ(lines, all);
}

TEST_F(ChangeFeedTest, ChangesDroppedBetweenPages_IsAnErrorThenNotKept) {
  scan();
  for (int number = 0; number < 20; ++number) make_file("a/" + std::to_string(number) + "/file");
  mark("a", tracker::MarkKind::tree);
  scan();
  auto reading = UsageDatabase::open_read_only(file()).value();
  int calls = 0;
  const auto until =
      read_changes_in_pages(reading, {.since = 1}, 3 * sizeof(FeedEntry), [&](const FeedEntry&) {
        if (++calls == 1) {
          std::filesystem::create_directory(temp / "another");
          options.drives.push_back({temp / "another", ""});
          scan();
        }
        return true;
      });
  EXPECT_FALSE(until) << "part of it was read already";
  EXPECT_LT(calls, 10);
  const auto again = read_changes_in_pages(reading, {.since = 1}, 3 * sizeof(FeedEntry),
                                           [&](const FeedEntry&) { return ++calls < 0; });
  ASSERT_TRUE(again);
  EXPECT_FALSE(*again);
}

// A range is sorted before its first entry: in files, not in memory.
TEST_F(ChangeFeedTest, LargeRange_IsReadInBoundedMemory) {
  make_directory("a");
  scan();
  change_and_scan();
  constexpr std::int64_t count = support::is_sanitized ? 60'000 : 200'000;
  SqliteStatement(database->handle(),
                  "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) "
                  "INSERT INTO changes SELECT 2, 1, CAST(printf('a/%0200d', i) AS BLOB), 4 FROM n",
                  count)
      .run();
  auto reader = UsageDatabase::open_read_only(file());
  ASSERT_TRUE(reader) << reader.error().message;
  const std::int64_t before = sqlite3_memory_used();
  sqlite3_memory_highwater(1);
  std::int64_t deleted = 0;
  const auto read = read_changes(*reader, {.since = 1}, [&](const FeedEntry& entry) {
    deleted += entry.is_deleted ? 1 : 0;
    return true;
  });
  EXPECT_TRUE(read && *read);
  EXPECT_EQ(deleted, count);
  EXPECT_LT(sqlite3_memory_highwater(0) - before, std::int64_t{8} << 20U);
}

class ConsumersTest : public testing::Test {
 protected:
  Consumers consumers() { return Consumers::open(temp_.path()).value(); }
  support::TempDirectory temp_;
};

TEST_F(ConsumersTest, Consumers_HaveSeparatePositions) {
  EXPECT_EQ(consumers().position("rsync", "id").value(), std::nullopt);
  EXPECT_EQ(consumers().oldest_unread("id").value(), std::nullopt);
  ASSERT_TRUE(consumers().commit({"rsync", "id", 7, {}}));
  ASSERT_TRUE(consumers().commit({"restic", "id", 5, {}}));
  ASSERT_TRUE(consumers().commit({"rsync", "id", 9, base::WallTime(std::chrono::hours(1))}));
  EXPECT_EQ(consumers().position("rsync", "id").value(), 9U);
  EXPECT_EQ(consumers().position("restic", "id").value(), 5U);
  EXPECT_EQ(consumers().oldest_unread("id").value(), 6U);
  const auto all = consumers().list().value();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].name, "rsync");
  EXPECT_EQ(all[1].committed_at, base::WallTime(std::chrono::hours(1)));
  EXPECT_TRUE(consumers().forget("restic").value());
  EXPECT_FALSE(consumers().forget("restic").value());
  EXPECT_EQ(consumers().oldest_unread("id").value(), 10U);
}

TEST_F(ConsumersTest, PositionInAnotherDatabase_IsNone) {
  ASSERT_TRUE(consumers().commit({"rsync", "id", 7, {}}));
  EXPECT_EQ(consumers().position("rsync", "another").value(), std::nullopt);
  EXPECT_EQ(consumers().oldest_unread("another").value(), std::nullopt);
}

TEST_F(ConsumersTest, Progress_IsKeptUntilTheConsumerMoves) {
  EXPECT_FALSE(consumers().find("sink").value());
  const ConsumerProgress progress{
      .until = 9, .after = "a\xFF/b", .after_file = "file", .files = true, .start_over_id = "0123"};
  ASSERT_TRUE(consumers().commit({"sink", "id", 7, {}, progress}));
  auto found = consumers().find("sink").value();
  ASSERT_TRUE(found && found->progress);
  EXPECT_EQ(found->scan, 7U);
  EXPECT_EQ(found->progress->until, 9U);
  EXPECT_EQ(found->progress->after, "a\xFF/b");
  EXPECT_EQ(found->progress->after_file, "file");
  EXPECT_TRUE(found->progress->files);
  EXPECT_EQ(found->progress->start_over_id, "0123");
  ASSERT_TRUE(consumers().commit({"sink", "id", 7, {}, ConsumerProgress{.until = 9}}));
  found = consumers().find("sink").value();
  EXPECT_EQ(found->progress->after, std::nullopt) << "at the beginning, not after the root";
  ASSERT_TRUE(consumers().commit({"sink", "id", 9, {}}));
  found = consumers().find("sink").value();
  EXPECT_FALSE(found->progress);
  ASSERT_TRUE(consumers().commit({"sink", "id", 9, {}, progress}));
  ASSERT_TRUE(consumers().commit({"sink", "id", 9, {}}));
  EXPECT_FALSE(consumers().find("sink").value()->progress) << "of the same scan: it begins anew";
  ASSERT_TRUE(consumers().commit({"sink", "id", 9, {}, progress}));
  EXPECT_TRUE(consumers().forget("sink").value());
  ASSERT_TRUE(consumers().commit({"sink", "id", 9, {}}));
  EXPECT_FALSE(consumers().find("sink").value()->progress) << "of a forgotten one";
}

TEST_F(ConsumersTest, Move_DoesNotUndoForget) {
  ASSERT_TRUE(consumers().commit({"sink", "id", 7, {}}));
  ASSERT_TRUE(consumers().move({"sink", "id", 8, {}}));
  EXPECT_EQ(consumers().position("sink", "id").value(), 8U);
  EXPECT_TRUE(consumers().forget("sink").value());
  const auto moved = consumers().move({"sink", "id", 9, {}});
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, Errc::consumer_forgotten);
  EXPECT_FALSE(consumers().find("sink").value());
}

// A Spoor before this table moves the consumer, and leaves the row.
TEST_F(ConsumersTest, FileWithoutProgress_GetsTheTableAndAnOldRowDoesNotCount) {
  ASSERT_TRUE(consumers().commit({"sink", "id", 7, {}, ConsumerProgress{.until = 9, .after = "a"}}));
  SqliteDatabase file(temp_ / "consumers.db", SQLITE_OPEN_READWRITE, checksum_vfs());
  file.exec("UPDATE consumers SET scan = 8");
  EXPECT_FALSE(consumers().find("sink").value()->progress);
  file.exec("DROP TABLE progress");
  ASSERT_TRUE(consumers().commit({"sink", "id", 8, {}, ConsumerProgress{.until = 9, .after = "a"}}));
  EXPECT_EQ(consumers().find("sink").value()->progress->after, "a");
}

TEST_F(ConsumersTest, WriteThatFails_IsAnErrorAndLeavesThePosition) {
  auto all = consumers();
  ASSERT_TRUE(all.commit({"sink", "id", 7, {}}));
  SqliteDatabase(temp_ / "consumers.db", SQLITE_OPEN_READWRITE, checksum_vfs())
      .exec("CREATE TRIGGER fail BEFORE INSERT ON consumers BEGIN SELECT RAISE(ABORT, 'no commit'); END");
  EXPECT_EQ(all.commit({"sink", "id", 8, {}}).error().code, Errc::database_failed);
  EXPECT_EQ(all.move({"sink", "id", 8, {}}).error().code, Errc::database_failed);
  EXPECT_EQ(all.position("sink", "id").value(), 7U);
}

TEST_F(ConsumersTest, InvalidNamesAndTooManyConsumers_AreRefused) {
  auto all = consumers();
  for (const std::string& bad : {std::string(), std::string("a\nb"), std::string(256, 'x')}) {
    EXPECT_EQ(all.commit({bad, "id", 1, {}}).error().code, std::errc::invalid_argument) << bad;
  }
  SqliteDatabase(temp_ / "consumers.db", SQLITE_OPEN_READWRITE, checksum_vfs())
      .exec(
          "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 999) "
          "INSERT INTO consumers SELECT 'c' || i, 'id', 1, 0 FROM n");
  EXPECT_FALSE(all.commit({"one more", "id", 1, {}}));
  EXPECT_TRUE(all.commit({"c0", "id", 2, {}}));
}

// Then each takes everything.
TEST_F(ConsumersTest, DamagedFile_IsSetAsideAndStartsOver) {
  ASSERT_TRUE(consumers().commit({"rsync", "id", 7, {}}));
  {
    std::fstream file(temp_ / "consumers.db", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(2 * 4096 - 100);  // the page of the consumers
    file << '!';
  }
  Consumers opened = consumers();
  const auto found = opened.position("rsync", "id");
  EXPECT_TRUE(!found || !*found);
  EXPECT_EQ(consumers().position("rsync", "id").value(), std::nullopt);
  EXPECT_TRUE(std::filesystem::exists(temp_ / "consumers.db.corrupt"));
  EXPECT_TRUE(consumers().commit({"rsync", "id", 8, {}}));
  EXPECT_EQ(consumers().position("rsync", "id").value(), 8U);
}

TEST_F(ConsumersTest, FileThatCannotBeOpened_IsAnErrorAndIsKept) {
  EXPECT_EQ(Consumers::open(temp_ / "missing").error().code, Errc::database_failed);
  std::filesystem::create_directory(temp_ / "consumers.db");
  const auto opened = Consumers::open(temp_.path());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::database_failed);
  EXPECT_THAT(opened.error().message, HasSubstr("consumers.db"));
  EXPECT_TRUE(std::filesystem::is_directory(temp_ / "consumers.db"));
}

TEST_F(ConsumersTest, FileOfAnotherProgram_IsRefused) {
  {
    SqliteDatabase(temp_ / "consumers.db", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        .exec("CREATE TABLE t(x)");
  }
  EXPECT_THAT(Consumers::open(temp_.path()).error().message, HasSubstr("move it aside"));
}

}  // namespace
}  // namespace spoor::scanner
