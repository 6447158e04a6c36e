#include <gmock/gmock.h>

#include "tests/scanner/feed_node.h"

namespace spoor::scanner {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class FileFeedTest : public FeedNode {
 protected:
  explicit FileFeedTest(std::vector<std::string> drives = {"drive"}) : FeedNode(std::move(drives)) {
    options.file_feed = true;
  }

  Lines feed(std::uint64_t since) { return FeedNode::feed({.since = since, .files = true}); }
  Lines directories_feed(std::uint64_t since) { return FeedNode::feed({.since = since}); }

  std::int64_t count(const std::string& table) {
    return database->handle().number("SELECT count(*) FROM " + table);
  }
  bool has_file_tables() {
    return count("sqlite_master WHERE name IN ('files', 'file_changes', 'files_go')") > 0;
  }
};

class TwoDrivesFileFeedTest : public FileFeedTest {
 protected:
  TwoDrivesFileFeedTest() : FileFeedTest({"one", "two"}) {}
};

// Of a file system whose times are so coarse that a change leaves no trace. Here none is made: what is stored
// and what is found are the same, as they would be then.
class CoarseTimesTest : public FileFeedTest {
 protected:
  CoarseTimesTest() {
    make_file("a/rewritten");
    make_file("b/other");
  }

  // The next scan takes place that long after the last change.
  void scan_after(std::chrono::nanoseconds since_change) {
    const std::int64_t changed_ns = reader.open_drive(drive() / "a")->ctime_ns;
    reader.clock.set_wall(base::WallTime(std::chrono::nanoseconds(changed_ns) + since_change));
    scan();
  }
};

TEST_F(CoarseTimesTest, FileReadWithinTimestampStep_IsReportedOnNextRead) {
  scan_after(std::chrono::nanoseconds(0));
  mark("a/rewritten", tracker::MarkKind::file);
  scan_after(std::chrono::hours(1));
  EXPECT_THAT(feed(1), ElementsAre("~ /", "~ a/", "~ a/rewritten"));
  mark("a/rewritten", tracker::MarkKind::file);
  scan_after(std::chrono::hours(2));
  EXPECT_THAT(feed(2), IsEmpty()) << "by then its time proves that it stayed as it is";
}

TEST_F(CoarseTimesTest, FileReadAfterTimestampStep_IsNotReported) {
  scan_after(std::chrono::hours(1));
  mark("a/rewritten", tracker::MarkKind::file);
  scan_after(std::chrono::hours(2));
  EXPECT_THAT(feed(1), IsEmpty());
}

TEST_F(CoarseTimesTest, ClockSetBackBeforeFileTime_FileIsReported) {
  scan_after(-std::chrono::hours(1));
  mark("a/rewritten", tracker::MarkKind::file);
  scan_after(std::chrono::hours(1));
  EXPECT_THAT(feed(1), ElementsAre("~ /", "~ a/", "~ a/rewritten"));
}

TEST_F(CoarseTimesTest, IdleScan_ReadsNothing) {
  scan_after(std::chrono::nanoseconds(0));
  reader.read_paths.clear();
  scan_after(std::chrono::nanoseconds(0));
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(CoarseTimesTest, ResumedScan_RemembersUntrustedTimestamps) {
  resumes = true;
  const std::int64_t changed_ns = reader.open_drive(drive() / "a")->ctime_ns;
  reader.clock.set_wall(base::WallTime(std::chrono::nanoseconds(changed_ns)));
  EXPECT_TRUE(stop_at("b"));
  scan_after(std::chrono::hours(1));
  EXPECT_TRUE(has_resumed);
  mark("a/rewritten", tracker::MarkKind::file);
  scan_after(std::chrono::hours(1));
  EXPECT_THAT(feed(1), testing::Contains("~ a/rewritten"));
}

TEST_F(FileFeedTest, NewChangedAndDeletedFiles_AreListed) {
  for (const char* path : {"top", "a/changed", "a/gone", "a/same", "b/same"}) make_file(path);
  scan();
  EXPECT_THAT(feed(1), IsEmpty()) << "the first scan names nothing";
  make_file("top", 20);
  make_file("a/changed", 20);
  make_file("a/fresh");
  remove("a/gone");
  for (const char* path : {"a", "b"}) mark(path);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ /", "~ top", "~ a/", "~ a/changed", "+ a/fresh", "- a/gone"));
  EXPECT_THAT(directories_feed(1), ElementsAre("~ ", "~ a"))
      << "files are told only where they are asked for";
  scan_everything();
  EXPECT_THAT(feed(2), IsEmpty());
}

// Bytes that fit no format, under a page checksum that is right.
TEST_F(FileFeedTest, StoredFilesThatCannotBeDecoded_AreDatabaseDamage) {
  scan();
  make_file("new/file");
  mark("new/file");
  scan();
  database->handle().exec("UPDATE files SET entries = x'0500'");
  const FeedRange range{.since = 1, .files = true};
  const auto read = read_changes(*database, range, [](const FeedEntry&) { return true; });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::database_damaged) << read.error().message;
  make_file("new/other");
  mark("new/other");
  const auto scanned = try_scan();
  ASSERT_FALSE(scanned);
  EXPECT_EQ(scanned.error().code, Errc::database_damaged) << scanned.error().message;
  EXPECT_TRUE(std::filesystem::exists(temp / "scan.db.damaged"));
}

TEST_F(FileFeedTest, NewAndDeletedDirectories_OnlyNewListsItsFiles) {
  make_file("old/x/file");
  make_file("old/file");
  scan();
  remove("old");
  make_file("fresh/x/file");
  make_file("fresh/file");
  make_directory("fresh/empty");
  for (const char* path : {"old", "fresh"}) mark(path);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ /", "+ fresh/", "+ fresh/file", "+ fresh/empty/", "+ fresh/x/",
                                   "+ fresh/x/file", "- old/"));
  EXPECT_EQ(count("file_changes"), 0) << "their directories tell them";
  EXPECT_EQ(count("files"), 2);
}

TEST_F(FileFeedTest, SeveralScans_AreMergedIntoOneChange) {
  for (const char* path : {"a/x", "a/y", "a/z"}) make_file(path);
  scan();
  const auto next_scan = [&] {
    mark("a");
    scan();
  };
  remove("a/x");
  make_file("a/short-lived");
  make_file("a/fresh");
  next_scan();
  make_file("a/x", 20);
  remove("a/short-lived");
  make_file("a/fresh", 30);
  next_scan();
  remove("a/z");
  next_scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "+ a/fresh", "- a/short-lived", "~ a/x", "- a/z"));
  EXPECT_THAT(feed(2), ElementsAre("~ a/", "~ a/fresh", "- a/short-lived", "+ a/x", "- a/z"));
}

TEST_F(FileFeedTest, NewDirectoryLosesFile_DeletionIsListed) {
  make_directory("a");
  scan();
  make_file("a/x/file");
  make_file("a/x/short-lived");
  mark("a/x");
  scan();
  remove("a/x/short-lived");
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "+ a/x/", "+ a/x/file", "- a/x/short-lived"));
}

TEST_F(FileFeedTest, FileAndDirectoryTradeNames_BothAreListed) {
  make_file("a/x/file");
  make_file("a/y");
  scan();
  remove("a/x");
  remove("a/y");
  make_file("a/x");
  make_file("a/y/file");
  for (const char* path : {"a/x", "a/y"}) mark(path);
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "+ a/x", "- a/y", "- a/x/", "+ a/y/", "+ a/y/file"));
}

TEST_F(FileFeedTest, SwitchedOn_WalksEverythingAndFeedStartsThere) {
  options.file_feed = false;
  make_file("a/file");
  make_file("b/file");
  scan();
  EXPECT_FALSE(has_file_tables());
  EXPECT_THAT(feed(1), ElementsAre("gone"));
  EXPECT_FALSE(keeps_files(*database).value());
  options.file_feed = true;
  make_file("a/more");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.reason, "scan.file_feed was switched on");
  EXPECT_EQ(report.record.figures.dirs_walked, 3U);
  EXPECT_TRUE(keeps_files(*database).value());
  EXPECT_THAT(feed(1), ElementsAre("gone")) << "which files changed before is not known";
  EXPECT_THAT(directories_feed(1), ElementsAre("~ a"));
  EXPECT_THAT(feed(2), IsEmpty());
  make_file("a/file", 20);
  mark("a");
  EXPECT_EQ(scan().record.reason, "");
  EXPECT_THAT(feed(2), ElementsAre("~ a/", "~ a/file"));
}

TEST_F(FileFeedTest, SwitchedOff_ForgetsTheFiles) {
  make_file("a/file");
  scan();
  options.file_feed = false;
  EXPECT_EQ(scan().record.reason, "");
  EXPECT_FALSE(has_file_tables());
  EXPECT_FALSE(keeps_files(*database).value());
  make_file("a/file", 20);
  mark("a");
  scan();
  EXPECT_THAT(feed(2), ElementsAre("gone"));
  options.file_feed = true;
  make_file("a/file", 30);
  mark("a");
  scan();
  EXPECT_THAT(feed(3), ElementsAre("gone"));
  EXPECT_THAT(feed(4), IsEmpty());
}

TEST_F(FileFeedTest, InterruptedScan_DoesNotSwitchFileFeedOn) {
  options.file_feed = false;
  make_file("a/file");
  scan();
  options.file_feed = true;
  stop.request_stop();
  EXPECT_FALSE(try_scan());
  stop = {};
  EXPECT_FALSE(has_file_tables());
  EXPECT_EQ(scan().record.reason, "scan.file_feed was switched on");
}

// Which files they had is not known, and a consumer may have begun without them: deleted and new as a whole,
// for a copy not to keep or lack any of them, whether they changed or not.
TEST_F(FileFeedTest, UnreadableWhenSwitchedOn_DirectoriesAreDeletedAndNew) {
  options.file_feed = false;
  for (const char* path : {"a/gone", "a/stays", "a/below/file", "b/file"}) make_file(path);
  scan();
  options.file_feed = true;
  for (const char* path : {"a", "b"}) reader.list_errors[path] = EIO;
  scan();
  reader.repair();
  remove("a/gone");
  mark("a");
  scan();
  EXPECT_THAT(feed(2), ElementsAre("- a/", "+ a/", "+ a/stays", "+ a/below/", "+ a/below/file", "- b/",
                                   "+ b/", "+ b/file"));
  make_file("b/file", 20);
  mark("b");
  scan();
  EXPECT_THAT(feed(3), ElementsAre("~ b/", "~ b/file"));
}

TEST_F(FileFeedTest, FileStatFails_ChangeIsListedLater) {
  make_file("a/file");
  scan();
  make_file("a/file", 20);
  reader.file_errors["a"] = EIO;
  mark("a");
  scan();
  EXPECT_THAT(feed(1), IsEmpty());
  reader.repair();
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "~ a/file"));
}

TEST_F(FileFeedTest, MountOverDirectory_FilesAreNewAfterUnmount) {
  make_file("a/m/file");
  scan();
  reader.mount_points.insert("a/m");
  mark("a/m");
  scan();
  EXPECT_EQ(count("files"), 0);
  reader.repair();
  scan();
  EXPECT_THAT(feed(2), ElementsAre("+ a/m/", "+ a/m/file"));
}

TEST_F(FileFeedTest, ChangeBeforeMount_IsListedAsDeletedAndNewAfterUnmount) {
  for (const char* path : {"a/m/gone", "a/m/stays"}) make_file(path);
  scan();
  make_file("a/m/gone", 20);
  mark("a/m");
  scan();
  reader.mount_points.insert("a/m");
  mark("a/m");
  scan();
  scan();
  reader.repair();
  remove("a/m/gone");
  scan();
  for (const std::uint64_t since : {1U, 2U}) {
    EXPECT_THAT(feed(since), ElementsAre("- a/m/", "+ a/m/", "+ a/m/stays")) << since;
  }
  EXPECT_THAT(feed(3), ElementsAre("+ a/m/", "+ a/m/stays"));
}

TEST_F(FileFeedTest, KilledScan_ResumesWithFilesItRead) {
  resumes = true;
  make_file("a/x0000/file");
  scan();
  for (int number = 0; number < 1100; ++number) make_file("a/x" + std::to_string(1000 + number) + "/file");
  make_file("a/x0000/file", 20);
  mark("a", tracker::MarkKind::tree);
  ASSERT_FALSE(scan_killed_after(1080));
  scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_LT(reader.read_paths.size(), 200U);
  EXPECT_EQ(count("files"), 1101);
  const auto lines = read({.since = 1, .files = true}, 100);
  EXPECT_EQ(lines.size(), 3U + 2 * 1100);
  EXPECT_EQ(lines[2], "~ a/x0000/file");
  EXPECT_EQ(lines.back(), "+ a/x2099/file");
}

// Its directory is open, and is read again.
TEST_F(FileFeedTest, FileChangesAgainBeforeResume_ChangesAreMergedIntoOne) {
  resumes = true;
  for (const char* path : {"a/back", "a/gone", "a/b/file"}) make_file(path);
  scan();
  for (const char* path : {"a/back", "a/gone"}) remove(path);
  for (const char* path : {"a/fresh", "a/passing"}) make_file(path);
  for (const char* path : {"a", "a/b"}) mark(path);
  ASSERT_TRUE(stop_at("a/b"));
  for (const char* path : {"a/back", "a/fresh"}) make_file(path, 20);
  remove("a/passing");
  scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "~ a/back", "+ a/fresh", "- a/gone", "- a/passing"));
}

// A scan is killed while a new directory is open, and the next one cannot read it: its consumers are told the
// directory without having to wait for its files.
TEST_F(FileFeedTest, NewDirectoryOpenAtAKill_ItsFilesAreNotMissed) {
  for (const bool is_resumed : {true, false}) {
    resumes = is_resumed;
    const std::string top = is_resumed ? "resumed" : "again";
    scan();
    const std::uint64_t since = latest_scan(*database).value();
    make_file(top + "/file");
    make_file(top + "/sub/deep");
    mark(top);
    ASSERT_TRUE(stop_at(top + "/sub"));
    reader.open_errors[top] = EACCES;
    scan();
    reader.repair();
    Lines told = feed(since);
    const std::uint64_t read = latest_scan(*database).value();
    mark(top);
    scan();
    for (const std::string& line : feed(read)) told.push_back(line);
    EXPECT_THAT(told, testing::Contains("+ " + top + "/file"));
    EXPECT_THAT(told, testing::Contains("+ " + top + "/sub/deep"));
  }
}

TEST_F(FileFeedTest, KilledScanWithoutFileFeed_IsNotResumedWithIt) {
  resumes = true;
  options.file_feed = false;
  for (int number = 0; number < 1100; ++number) make_file("x" + std::to_string(number) + "/file");
  ASSERT_FALSE(scan_killed_after(1080));
  options.file_feed = true;
  scan();
  EXPECT_FALSE(has_resumed);
  EXPECT_EQ(count("files"), 1100);
}

TEST_F(FileFeedTest, FileChanges_AreDroppedWithTheirScan) {
  make_file("a/file");
  scan();
  options.oldest_unread = 2;
  options.changes_kept_max = 40;
  std::uint64_t last = 0;
  for (int number = 0; number < 40; ++number) {
    make_file("a/f" + std::to_string(number));
    mark("a");
    last = scan().record.id;
  }
  EXPECT_EQ(count("file_changes"), 20) << "with as many of directories";
  EXPECT_THAT(feed(last - 21), ElementsAre("gone"));
  EXPECT_EQ(feed(last - 20).size(), 21U);
}

TEST_F(TwoDrivesFileFeedTest, RemovedFile_IsDeletedOnceNoDriveHasIt) {
  for (const std::size_t number : {0U, 1U}) {
    for (const char* path : {"a/both", "a/grows"}) write_file(on_drive(path, number), 10);
  }
  make_file("a/one");
  scan();
  remove("a/both");
  remove("a/one");
  write_file(on_drive("a/grows", 1), 20);
  write_file(on_drive("a/second", 1), 20);
  mark("a");
  scan();
  EXPECT_THAT(feed(1), ElementsAre("~ a/", "- a/both", "~ a/both", "~ a/grows", "- a/one", "+ a/second"));
  write_file(on_drive("a/second", 0), 20);
  mark("a");
  scan();
  EXPECT_THAT(feed(2), ElementsAre("~ a/", "~ a/second")) << "the other drive had it";
}

TEST_F(TwoDrivesFileFeedTest, DirectoryRemovedFromOneDrive_OtherDrivesFilesAreListed) {
  for (const std::size_t number : {0U, 1U}) write_file(on_drive("a/x/file", number), 10);
  write_file(on_drive("a/x/only-here", 0), 10);
  write_file(on_drive("a/x/deep/file", 1), 10);
  scan();
  remove("a/x");
  mark("a/x");
  scan();
  EXPECT_THAT(feed(1),
              ElementsAre("~ a/", "- a/x/", "+ a/x/", "+ a/x/file", "+ a/x/deep/", "+ a/x/deep/file"));
}

TEST_F(TwoDrivesFileFeedTest, RemovedDrive_ItsFilesAreForgotten) {
  write_file(on_drive("a/file", 0), 10);
  write_file(on_drive("b/file", 1), 10);
  scan();
  EXPECT_EQ(count("files"), 2);
  options.drives.pop_back();
  scan();
  EXPECT_EQ(count("files"), 1);
}

}  // namespace
}  // namespace spoor::scanner
