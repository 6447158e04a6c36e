// The recipes that copy and back up, with real scans and the programs that they are for.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cluster/recipes/programs.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class ProgramTest : public EachProgramTest {
 protected:
  support::CommandResult fail() {
    auto failed = support::run_command(run_command("copy"));
    EXPECT_NE(failed.code, 0) << failed.out;
    return failed;
  }

  // What the consumer has still to read.
  std::string unread() { return changes({"--consumer", "copy"}).out; }
};

class EmptyDriveTest : public ProgramTest {};

TEST_P(EmptyDriveTest, ThenFiles_AreCopied) {
  cluster_.scan(node());
  run();
  change_and_scan({"a/file"});
  run();
  expect_same();
}

TEST_P(ProgramTest, NoConsumerGiven_ItIsNamedByTheProgram) {
  change_and_scan({"a/file"});
  auto command = run_command("copy");
  command.pop_back();
  EXPECT_EQ(support::run_command(command).code, 0);
  EXPECT_EQ(changes({"--consumer", program_}).code, 0);
  EXPECT_EQ(changes({"--consumer", "copy"}).code, 4);
}

TEST_P(ProgramTest, DriveUnmounted_FailsAndKeepsTheCopy) {
  change_and_scan({"a/file"});
  run();
  change_and_scan({"top"});
  const fs::path away = work_ / "away";
  fs::rename(drive(), away);
  fs::create_directory(drive());
  for (const char* consumer : {"copy", "new"}) {
    const auto refused = support::run_command(run_command(consumer));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("carries no identity"));
  }
  EXPECT_TRUE(fs::exists(copied() / "a/file"));
  fs::remove(drive());
  fs::rename(away, drive());
  run();
  expect_same();
}

TEST_P(ProgramTest, CopyFailed_NextRunCoversTheSameChanges) {
  change_and_scan({"bucket/a/file"});
  run();
  change_and_scan({"bucket/b/file"});
  const fs::path target = has_layers() ? (work_ / "repository") : fs::path(copy_);
  fs::rename(target, work_ / "away");
  std::ofstream(target) << "in the way";
  fail();
  EXPECT_EQ(unread(), "bucket/\nbucket/b/\n");
  fs::remove(target);
  const auto failed = fail();
  const std::string why = program_ == "restic" ? "spoor-restic: restic snapshots failed with code 1"
                          : program_ == "borg" ? "spoor-borg: borg list failed with code 2"
                                               : "";
  EXPECT_THAT(failed.err, HasSubstr(why));
  fs::rename(work_ / "away", target);
  run();
  expect_same();
  EXPECT_EQ(unread(), "");
}

// rsync ends with 24 where a listed directory lies in one that is gone.
TEST_P(ProgramTest, DirectoryVanishedAfterScan_IsRemovedOnceAScanFindsThat) {
  change_and_scan({"bucket/a/file", "bucket/b/file"});
  run();
  change_and_scan({"bucket/a/below/file", "bucket/vanishing/listed/file", "more"});
  fs::remove_all(drive() / "bucket/a");
  fs::remove_all(drive() / "bucket/vanishing");
  run();
  const fs::path copy = copied();
  EXPECT_TRUE(fs::exists(copy / "bucket/a/file")) << "it may have been moved for a moment only";
  EXPECT_TRUE(fs::exists(copy / "more"));
  for (const char* gone : {"bucket/a", "bucket/vanishing"}) mark_and_scan(gone);
  run();
  expect_same();
  EXPECT_EQ(unread(), "");
}

// It is the same directory in the scans before and after the copy, which needs no second look.
TEST_P(ProgramTest, DirectoryMovedAwayBeforeTheRunAndBack_IsCopied) {
  change_and_scan({"moving/deep/file"});
  run();
  for (const char* path : {"moving/deep/new", "moving/new"}) change(path);
  // More names than a pipe holds.
  for (int i = 0; i < (program_ == "rsync" ? 2'000 : 0); ++i) {
    const fs::path each = drive() / "moving" / (std::to_string(i) + std::string(200, 'x'));
    fs::create_directory(each);
    std::ofstream(each / "new") << i;
  }
  mark_and_scan("moving");
  change_and_scan({"top"});
  fs::rename(drive() / "moving", drive() / "elsewhere");
  run();
  fs::rename(drive() / "elsewhere", drive() / "moving");
  mark_and_scan("elsewhere");
  mark_and_scan("moving");
  run();
  expect_same();
}

// restic refuses to make a snapshot of nothing.
INSTANTIATE_TEST_SUITE_P(Programs, EmptyDriveTest, testing::Values("rsync", "rclone", "borg"), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, ProgramTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

TEST_F(RecipeTest, RsyncToARelativeDestination_IsTheSameInAllSteps) {
  use("rsync");
  const fs::path before = fs::current_path();
  fs::current_path(work_.path());
  copy_ = "copy";
  for (const char* path : {"bucket/a/file", "bucket/a/more"}) {
    change_and_scan({path});
    run();
  }
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(drive() / copy_)) << "nothing is written to the drive";
  copy_ = work_ / "copy";
  expect_same();
}

TEST_F(RecipeTest, RcloneOfNamesInTwoUnicodeNormalForms_CopiesTwoFiles) {
  use("rclone");
  const std::vector<std::vector<std::string>> steps{
      {"full/caf\u00e9", "full/cafe\u0301"}, {"a/caf\u00e9"}, {"a/cafe\u0301"}};
  for (const auto& paths : steps) {
    change_and_scan(paths);
    run();
    expect_same();
  }
}

TEST_F(RecipeTest, RcloneOfANameThatItCannotCopy_IsReportedAndNotCommitted) {
  use("rclone");
  change_and_scan({"a/file"});
  run();
  change_and_scan({"a/\u201bquoted", "b/file"});
  const auto refused = support::run_command(run_command("copy"));
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("rclone cannot copy a name with U+201B: a/"));
  EXPECT_TRUE(fs::exists(copied() / "b/file"));
  fs::remove(drive() / "a/\u201bquoted");
  mark_and_scan("a");
  run();
  expect_same();
}

class ResticTest : public RecipeTest {
 protected:
  void SetUp() override {
    RecipeTest::SetUp();
    use("restic");
  }

  std::string restic(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "restic");
    const auto done = run_program(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }

  json snapshots(const std::string& tag) {
    return json::parse(restic({"snapshots", "--json", "--tag", "copy," + tag}));
  }

  void back_up(const std::vector<std::string>& paths) {
    change_and_scan(paths);
    run();
  }
};

TEST_F(ResticTest, Snapshots_HaveNothingButWhatChanged) {
  back_up({"bucket/quiet/file", "bucket/a/file", "top"});
  EXPECT_EQ(snapshots("full").size(), 1U);
  back_up({"bucket/a/file", "bucket/-b/c/file\nwith a break"});
  EXPECT_EQ(snapshots("changes").size(), 1U);
  const std::string changed = restic({"ls", "latest", "--tag", "copy,files"});
  EXPECT_THAT(changed, HasSubstr("/bucket/a/file"));
  EXPECT_THAT(changed, testing::Not(HasSubstr("quiet")));
  run();
  EXPECT_EQ(snapshots("changes").size(), 1U) << "nothing changed";
  back_up({"bucket/a/file"});
  expect_same();
}

TEST_F(ResticTest, FullSnapshotForgotten_NextBackupIsFull) {
  cluster_.scan(node());
  EXPECT_NE(restore().code, 0) << "there is no backup";
  back_up({"a/file"});
  restic({"forget", "latest"});
  back_up({"b/file"});
  EXPECT_EQ(snapshots("full").size(), 1U);
  expect_same();
}

class ForgottenSnapshotTest : public ResticTest, public testing::WithParamInterface<const char*> {};

TEST_P(ForgottenSnapshotTest, SnapshotForgotten_RestoreFailsAndNextBackupIsFull) {
  for (const char* path : {"a/file", "b/file", "c/file"}) back_up({path});
  const std::string tag = GetParam();
  const auto found = snapshots(tag);
  ASSERT_EQ(found.size(), tag == "files" ? 3U : 2U);
  restic({"forget", found[found.size() - 2]["id"].get<std::string>()});
  expect_restore_is_refused("keep all snapshots since the last full one\n");
  const std::string listed = recipe("spoor-restic", {"list", "copy"}, environment()).out;
  EXPECT_THAT(listed, testing::ContainsRegex(" all\n.*changes, cannot be restored: .* missing"));
  run();
  EXPECT_EQ(snapshots("full").size(), 2U);
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Of, ForgottenSnapshotTest, testing::Values("changes", "files"));

class BorgTest : public RecipeTest {
 protected:
  void SetUp() override {
    RecipeTest::SetUp();
    use("borg", "repokey");
  }

  std::string borg(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "borg");
    const auto done = run_program(arguments);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }
};

TEST_F(BorgTest, ArchiveDeleted_RestoreFailsAndNextBackupIsFull) {
  for (const char* path : {"a/file", "b/file", "c/file"}) {
    change_and_scan({path});
    run();
  }
  std::istringstream list(borg({"list", "--format", "{archive} {comment}{NL}"}));
  std::vector<std::string> archives;
  for (std::string name, comment; list >> name && std::getline(list, comment);) {
    archives.push_back(name);
    EXPECT_THAT(comment, HasSubstr(R"("tags": ["copy", )"));
  }
  ASSERT_EQ(archives.size(), 6U) << "two for each layer";
  borg({"delete", "::" + archives[2]});
  expect_restore_is_refused("keep all snapshots since the last full one\n");
  EXPECT_THAT(run().out, HasSubstr("backs up all of"));
  expect_same();
}

// borg does not read such a name from a list.
TEST_F(BorgTest, NameWithCarriageReturn_IsInASecondArchive) {
  change_and_scan({"a/file"});
  run();
  change_and_scan({"a/file", "a/carriage\rreturn"});
  run();
  expect_same();
  borg({"delete", "--glob-archives", "*.2"});
  expect_restore_is_refused("the files of layer 2 are missing");
}

TEST_F(BorgTest, ArchivesOfAnotherProgram_AreIgnored) {
  change_and_scan({"a/file"});
  borg({"create", "::by hand", drive().native()});
  borg({"create", "--comment", "[1]", "::by another", drive().native()});
  run();
  expect_same();
}

}  // namespace
}  // namespace spoor::cluster
