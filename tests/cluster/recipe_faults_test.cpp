// The recipes that copy and back up, while directories are moved, made and removed, with two runs at once,
// and with programs that fail.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/cluster/recipe_programs.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MovedDirectoryTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    RecipeFaultsTest::SetUp();
    use(GetParam());
    change("moving/deep/file");
    change("kept/file");
    scan_settled();
  }
};

class MovedAwayTest : public MovedDirectoryTest {};

TEST_P(MovedAwayTest, DuringACopyOfChanges_IsCopiedByTheNextRun) {
  run();
  change("moving/deep/new");
  change("kept/new");
  scan_settled();
  move_while_it_copies(false);
  run();
  EXPECT_TRUE(fs::exists(copied() / "moving/deep/file")) << "the older file is still there";
  EXPECT_TRUE(fs::exists(copied() / "kept/new"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MovedAwayAndBackDuringACopyOfChanges_IsCopiedByTheNextRun) {
  run();
  change("moving/deep/new");
  change("kept/new");
  scan_settled();
  move_while_it_copies(true);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep/new"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedAwayTest, DuringAFullCopy_IsCopiedByTheNextRun) {
  move_while_it_copies(false);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MovedAwayAndBackDuringAFullCopy_IsCopiedByTheNextRun) {
  move_while_it_copies(true);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MadeAfterTheScanAndRemovedAfterAFullCopy_IsRemovedFromTheCopy) {
  fs::create_directories(drive() / "later/deep");
  fs::create_directories(drive() / "kept/stays");
  std::ofstream(drive() / "later/deep/file") << "1";
  std::ofstream(drive() / "kept/stays/file") << "1";
  run();
  run();
  EXPECT_TRUE(fs::exists(copied() / "later/deep/file")) << "no scan has looked for it";
  fs::remove_all(drive() / "later");
  mark_and_scan("later");
  run();
  expect_same();
  mark_and_scan("kept");
  run();
  expect_same();
}

// Its content is not that of the directory which the scan found.
TEST_P(MovedDirectoryTest, ParentReplacedByASymbolicLink_IsNotFollowed) {
  run();
  change("moving/deep/file");
  change("kept/new");
  scan_settled();
  fs::rename(drive() / "moving", drive() / "elsewhere");
  fs::create_directories(work_ / "other/deep");
  std::ofstream(work_ / "other/deep/file") << "other";
  fs::create_directory_symlink(work_ / "other", drive() / "moving");
  run();
  EXPECT_THAT(content(copied() / "moving/deep/file"), HasSubstr("moving/deep/file"));
  fs::remove(drive() / "moving");
  end_move();
  run();
  expect_same();
}

// borg takes a second for each call; that it is back in the end is harder to notice.
INSTANTIATE_TEST_SUITE_P(Programs, MovedAwayTest, testing::Values("rsync", "rclone", "restic"), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, MovedDirectoryTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

// Another consumer does not wait.
TEST_F(RecipeFaultsTest, RunKilled_NextRunWaitsForItsProgram) {
  use("rsync");
  change("a/file");
  cluster_.scan(node());
  const fs::path begun = work_ / "begun";
  const fs::path end = work_ / "end";
  for (const fs::path& each : {begun, end}) ASSERT_EQ(::mkfifo(each.c_str(), 0600), 0);
  replace("rsync", "if mkdir '" + (work_ / "once").native() + "' 2>/dev/null; then echo >'" + begun.native() +
                       "'; read -r <'" + end.native() + "'; fi\nexec \"$real\" \"$@\"\n");
  support::Daemon first(run_command("copy"));
  std::string line;
  std::getline(std::ifstream(begun), line);
  first.signal(SIGKILL);
  first.wait();
  support::Daemon second(run_command("copy"));
  EXPECT_EQ(second.wait_for("waits for the end of another run of "), "'copy'");
  copy_ = work_ / "another";
  run("another");
  expect_same();
  std::ofstream(end) << '\n';
  EXPECT_EQ(second.wait(), 0);
  copy_ = work_ / "copy";
  expect_same();
}

class FullCopyTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {};

TEST_P(FullCopyTest, AfterAReset_FilesWithTheSameSizeAndTimeAreCompared) {
  const std::string& place = GetParam();
  std::unique_ptr<support::Daemon> server;
  use(place == "rsync" ? "rsync" : "rclone");
  if (place == "webdav") {
    server.reset(new support::Daemon({"rclone", "serve", "webdav", "--addr", "127.0.0.1:0", work_.path()}));
    const std::string url = "http://" + server->wait_for("WebDav Server started on http://");
    std::ofstream(work_ / "rclone") << "[served]\ntype = webdav\nvendor = other\nurl = " << url << '\n';
    copy_ = "served:copy";
  }
  change("a/file");
  cluster_.scan(node());
  run();
  const fs::path file = drive() / "a/file";
  const auto modified = fs::last_write_time(file);
  std::ofstream(file) << "A/FILE";
  fs::last_write_time(file, modified);
  ASSERT_EQ(changes({"--consumer", "copy", "--forget"}).code, 0);
  run();
  copy_ = work_ / "copy";
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Places, FullCopyTest, testing::Values("rsync", "local", "webdav"), name_of);

class MarkedCopyTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    RecipeFaultsTest::SetUp();
    use(GetParam());
    change("a/file");
    cluster_.scan(node());
    run();
    change("b/file");
    cluster_.scan(node());
  }

  void expect_refused() {
    const auto state = [&] {
      return changes({"--consumer", "copy"}).out + support::run_command({"find", work_.path()}).out;
    };
    const std::string before = state();
    const auto refused = support::run_command(run_command("copy"));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr(copy_ + " is not the copy that 'copy' made"));
    EXPECT_THAT(refused.err, HasSubstr("'spoor changes --consumer copy --forget'"));
    EXPECT_EQ(state(), before);
  }

  const fs::path away_ = work_ / "away";
};

TEST_P(MarkedCopyTest, TargetUnmountedOrOfAnotherConsumer_IsRefused) {
  fs::rename(copy_, away_);
  expect_refused();
  fs::create_directory(copy_);
  expect_refused();
  copy_ = work_ / "another";
  run("another");
  expect_refused();
  copy_ = work_ / "copy";
  fs::remove(copy_);
  fs::rename(away_, copy_);
  run();
  expect_same();
}

TEST_P(MarkedCopyTest, TargetLost_AFullCopyBeginsAnewAndTheOldOneIsRefused) {
  fs::rename(copy_, away_);
  expect_refused();
  ASSERT_EQ(changes({"--consumer", "copy", "--forget"}).code, 0);
  run();
  expect_same();
  run();
  copy_ = away_;
  expect_refused();
}

TEST_P(MarkedCopyTest, FullCopy_KeepsTheMarker) {
  const std::string marker = content(fs::path(copy_) / ".spoor/copy");
  std::ofstream(drive() / ".spoor/copy") << "a user's";
  ASSERT_EQ(changes({"--consumer", "copy", "--forget"}).code, 0);
  run();
  EXPECT_EQ(content(fs::path(copy_) / ".spoor/copy"), marker);
  expect_same();
}

TEST_P(MarkedCopyTest, CopyOfAnEarlierVersion_IsMarkedByTheNextRun) {
  fs::remove_all(fs::path(copy_) / ".spoor");
  for (const auto& each : fs::directory_iterator(state_of_recipes()))
    if (each.path().extension() == ".left") std::ofstream(each.path()) << R"({"missing":[],"unknown":[]})";
  run();
  expect_same();
  fs::remove_all(fs::path(copy_) / ".spoor");
  expect_refused();
}

INSTANTIATE_TEST_SUITE_P(Programs, MarkedCopyTest, testing::Values("rsync", "rclone"), name_of);

class DurableCopyTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {};

TEST_P(DurableCopyTest, CopyIsNotOnTheDisk_IsNotCommitted) {
  use(GetParam());
  for (const char* path : {"a/file", "b/file"}) {
    SCOPED_TRACE(path);
    change(path);
    cluster_.scan(node());
    const std::string before = changes({"--consumer", "copy"}).out;
    replace("sync", "exit 1\n");
    EXPECT_EQ(support::run_command(run_command("copy")).code, 1);
    EXPECT_EQ(changes({"--consumer", "copy"}).out, before);
    fs::remove(work_ / "bin/sync");
    run();
    EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
  }
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Programs, DurableCopyTest, testing::Values("rsync", "rclone"), name_of);

TEST_F(RecipeFaultsTest, ResticReportsAnythingElseThanAMissingFile_Fails) {
  use("restic");
  change("a/file");
  cluster_.scan(node());
  run();
  change("a/file");
  cluster_.scan(node());
  for (const char* message : {"cannot read a file", R"({"message_type":"error","error":{},"item":""})",
                              "a/other does not exist, skipping"}) {
    SCOPED_TRACE(message);
    replace("restic", std::string("case \"$*\" in *--files-from-raw*) echo '") + message +
                          "' >&2; exit 3;; esac\nexec \"$real\" \"$@\"\n");
    const auto failed = support::run_command(run_command("copy"));
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr(message));
  }
  fs::remove(work_ / "bin/restic");
  run();
  expect_same();
}

// restic then makes no snapshot of the files.
TEST_F(RecipeFaultsTest, ResticReadsNoneOfTheFiles_RestoreSucceedsAndTheNextRunCopiesThem) {
  use("restic");
  for (const char* path : {"a/file", "long/file"}) change(path);
  scan_settled();
  run();
  change("a/new");
  scan_settled();
  const fs::path away = work_ / "away";
  replace("restic", "case \"$*\" in *--files-from-raw*) mv '" + (drive() / "a").native() + "' '" +
                        away.native() + "';; esac\n\"$real\" \"$@\"; code=$?\nmv '" + away.native() + "' '" +
                        (drive() / "a").native() + "' 2>/dev/null\nexit $code\n");
  EXPECT_EQ(support::run_command(run_command("copy")).code, 3);
  fs::remove(work_ / "bin/restic");
  EXPECT_TRUE(fs::exists(copied() / "a/file"));
  EXPECT_FALSE(fs::exists(copied() / "a/new"));
  run();
  expect_same();
}

class LongPathTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {};

// Alone it leaves restic without a file.
TEST_P(LongPathTest, PathOfMoreThan4096Bytes_IsNamedAndTheRestIsCopied) {
  use(GetParam());
  for (const char* path : {"a/file", "long/file"}) change(path);
  scan_settled();
  run();
  ASSERT_EQ(support::run_command({"/usr/bin/python3", "-c",
                                  "import os, sys\nos.chdir(sys.argv[1])\nos.remove('file')\n"
                                  "for _ in range(20): os.mkdir('d' * 250); os.chdir('d' * 250)\n"
                                  "open('file', 'w')",
                                  drive() / "long"})
                .code,
            0);
  mark_and_scan("long");
  for (const char* path : {"a/new", "a/newer"}) {
    const auto done = support::run_command(run_command("copy"));
    EXPECT_EQ(done.code, 3) << done.err;
    EXPECT_THAT(done.err, HasSubstr("skips long/ddd"));
    EXPECT_FALSE(fs::exists(copied() / "long/file"));
    EXPECT_EQ(support::run_command({"diff", "-r", drive() / "a", copied() / "a"}).out, "");
    change(path);
    fs::remove(drive() / "a/file");
    scan_settled();
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, LongPathTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

TEST_F(RecipeFaultsTest, ConsumerNamedLikeATag_IsRefused) {
  use("restic");
  change("a/file");
  cluster_.scan(node());
  for (const char* name : {"full", "files", "changes", "layer-1", "feed-x", "scan-1", "part-x", "left-0"}) {
    const auto refused = support::run_command(run_command(name));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("choose another one for the consumer"));
  }
}

// restic takes what it excludes for a pattern.
TEST_F(RecipeFaultsTest, DriveNamedLikeAPattern_ResticLeavesItsFolderOut) {
  use("restic");
  const fs::path odd = work_ / "dr[1]v*e";
  fs::create_directory(odd);
  cluster_.configure(node(), [&](nlohmann::json& config) { config["drives"] = {odd.native()}; });
  node().drives[0] = odd;
  change("a/file");
  cluster_.scan(node());
  run();
  EXPECT_TRUE(fs::exists(drive() / ".spoor"));
  EXPECT_FALSE(fs::exists(copied() / ".spoor"));
  expect_same();
}

}  // namespace
}  // namespace spoor::cluster
