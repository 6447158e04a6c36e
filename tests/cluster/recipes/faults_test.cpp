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

#include "tests/cluster/recipes/programs.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class MovedDirectoryTest : public EachProgramTest {
 protected:
  void SetUp() override {
    EachProgramTest::SetUp();
    change_and_scan({"moving/deep/file", "kept/file"});
  }
};

class MovedAwayTest : public MovedDirectoryTest {};

TEST_P(MovedAwayTest, DuringACopyOfChanges_IsCopiedByTheNextRun) {
  run();
  change_and_scan({"moving/deep/new", "kept/new"});
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
  change_and_scan({"moving/deep/new", "kept/new"});
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
  change_and_scan({"moving/deep/file", "kept/new"});
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
TEST_F(RecipeTest, RunKilled_NextRunWaitsForItsProgram) {
  use("rsync");
  change_and_scan({"a/file"});
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

class FullCopyTest : public RecipeTest, public testing::WithParamInterface<std::string> {};

TEST_P(FullCopyTest, AfterAReset_FilesWithTheSameSizeAndTimeAreCompared) {
  const std::string& place = GetParam();
  std::unique_ptr<support::Daemon> server;
  use(place == "rsync" ? "rsync" : "rclone");
  if (place == "webdav") {
    server = serve_work();
    copy_ = "served:copy";
  }
  change_and_scan({"a/file"});
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

class MarkedCopyTest : public EachProgramTest {
 protected:
  void SetUp() override {
    EachProgramTest::SetUp();
    change_and_scan({"a/file"});
    run();
    change_and_scan({"b/file"});
  }

  void expect_refused() {
    const auto state = [&] {
      return changes({"--consumer", "copy"}).out + support::run_command({"find", work_.path()}).out;
    };
    const std::string before = state();
    expect_run_fails(1, copy_ + " is not the copy that 'copy' made");
    expect_run_fails(1, "'spoor changes --consumer copy --forget'");
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

class DurableCopyTest : public EachProgramTest {};

TEST_P(DurableCopyTest, CopyIsNotOnTheDisk_IsNotCommitted) {
  for (const char* path : {"a/file", "b/file"}) {
    SCOPED_TRACE(path);
    change_and_scan({path});
    const std::string before = changes({"--consumer", "copy"}).out;
    replace("sync", "exit 1\n");
    expect_run_fails(1, "");
    EXPECT_EQ(changes({"--consumer", "copy"}).out, before);
    fs::remove(work_ / "bin/sync");
    run();
    EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
  }
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Programs, DurableCopyTest, testing::Values("rsync", "rclone"), name_of);

TEST_F(RecipeTest, ResticReportsAnythingElseThanAMissingFile_Fails) {
  use("restic");
  change_and_scan({"a/file"});
  run();
  change_and_scan({"a/file"});
  for (const char* message : {"cannot read a file", R"({"message_type":"error","error":{},"item":""})",
                              "a/other does not exist, skipping"}) {
    SCOPED_TRACE(message);
    replace("restic", std::string("case \"$*\" in *--files-from-raw*) echo '") + message +
                          "' >&2; exit 3;; esac\nexec \"$real\" \"$@\"\n");
    expect_run_fails(1, message);
  }
  fs::remove(work_ / "bin/restic");
  run();
  expect_same();
}

// restic then makes no snapshot of the files.
TEST_F(RecipeTest, ResticReadsNoneOfTheFiles_RestoreSucceedsAndTheNextRunCopiesThem) {
  use("restic");
  change_and_scan({"a/file", "long/file"});
  run();
  change_and_scan({"a/new"});
  const fs::path away = work_ / "away";
  replace("restic", "case \"$*\" in *--files-from-raw*) mv '" + (drive() / "a").native() + "' '" +
                        away.native() + "';; esac\n\"$real\" \"$@\"; code=$?\nmv '" + away.native() + "' '" +
                        (drive() / "a").native() + "' 2>/dev/null\nexit $code\n");
  expect_run_fails(3, "");
  fs::remove(work_ / "bin/restic");
  EXPECT_TRUE(fs::exists(copied() / "a/file"));
  EXPECT_FALSE(fs::exists(copied() / "a/new"));
  run();
  expect_same();
}

class LongPathTest : public EachProgramTest {};

// Alone it leaves restic without a file.
TEST_P(LongPathTest, PathOfMoreThan4096Bytes_IsNamedAndTheRestIsCopied) {
  change_and_scan({"a/file", "long/file"});
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
    expect_run_fails(3, "skips long/ddd");
    EXPECT_FALSE(fs::exists(copied() / "long/file"));
    EXPECT_EQ(support::run_command({"diff", "-r", drive() / "a", copied() / "a"}).out, "");
    change(path);
    fs::remove(drive() / "a/file");
    scan_settled();
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, LongPathTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

TEST_F(RecipeTest, ConsumerNamedLikeATag_IsRefused) {
  use("restic");
  change_and_scan({"a/file"});
  for (const char* name : {"full", "files", "changes", "layer-1", "feed-x", "scan-1", "part-x", "left-0"})
    expect_run_fails(1, "choose another one for the consumer", name);
}

// restic takes what it excludes for a pattern.
TEST_F(RecipeTest, DriveNamedLikeAPattern_ResticLeavesItsFolderOut) {
  use("restic");
  const fs::path odd = work_ / "dr[1]v*e";
  fs::create_directory(odd);
  cluster_.configure(node(), [&](nlohmann::json& config) { config["drives"] = {odd.native()}; });
  node().drives[0] = odd;
  change_and_scan({"a/file"});
  run();
  EXPECT_TRUE(fs::exists(drive() / ".spoor"));
  EXPECT_FALSE(fs::exists(copied() / ".spoor"));
  expect_same();
}

}  // namespace
}  // namespace spoor::cluster
