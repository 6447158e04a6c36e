// The recipe for rclone, with real scans and the program that it is for.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class RcloneTest : public OneNodeTest {
 protected:
  support::CommandResult rclone(const std::string& consumer = "rclone") {
    return recipe("spoor-rclone", {drive().native(), copy().native(), consumer}, environment_);
  }

  void expect_copied() {
    const auto copied = rclone();
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(support::run_command({"diff", "-r", "--exclude=.spoor", drive().native(), copy()}).out, "");
  }

  fs::path copy() const { return work_ / "copy"; }

  support::TempDirectory work_;
  const std::vector<std::string> environment_{"RCLONE_CONFIG=" + (work_ / "none").native()};
};

TEST_F(RcloneTest, EmptyDrive_ThenFiles_AreCopied) {
  cluster_.scan(node());
  EXPECT_EQ(rclone().code, 0);
  change("a/file");
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, DriveUnmounted_FailsAndKeepsTheCopy) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("top");
  cluster_.scan(node());
  const fs::path away = work_ / "away";
  fs::rename(drive(), away);
  fs::create_directory(drive());
  for (const char* consumer : {"rclone", "new"}) {
    const auto refused = rclone(consumer);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("carries no identity"));
  }
  EXPECT_TRUE(fs::exists(copy() / "a/file"));
  fs::remove(drive());
  fs::rename(away, drive());
  expect_copied();
}

TEST_F(RcloneTest, CopyFailed_IsRepeatedByTheNextRun) {
  change("bucket/a/file");
  scan_settled();
  expect_copied();
  change("bucket/b/file");
  scan_settled();
  fs::rename(copy(), work_ / "away");
  std::ofstream(copy()) << "in the way";
  EXPECT_EQ(rclone().code, 1);
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "bucket/\nbucket/b/\n");
  fs::remove(copy());
  fs::rename(work_ / "away", copy());
  expect_copied();
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "");
}

TEST_F(RcloneTest, ConsumerForgotten_CopiesEverything) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  ASSERT_EQ(changes({"--consumer", "rclone", "--forget"}).code, 0);
  change("b/file");
  cluster_.scan(node());
  const auto copied = rclone();
  EXPECT_THAT(copied.out, HasSubstr("copies all of"));
  expect_copied();
}

TEST_F(RcloneTest, DirectoryVanishedAfterScan_IsDeletedOnceAScanFindsThat) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("a/below/file");
  change("b/file");
  cluster_.scan(node());
  fs::remove_all(drive() / "a");
  EXPECT_EQ(rclone().code, 0);
  EXPECT_TRUE(fs::exists(copy() / "a/file")) << "it may have been moved for a moment only";
  EXPECT_TRUE(fs::exists(copy() / "b/file"));
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "a"}).code, 0);
  cluster_.scan(node());
  expect_copied();
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "");
}

// The scans before and after the copy know it as the same directory, and do not list it again.
TEST_F(RcloneTest, DirectoryMovedAwayAndBack_ItsChangesAreCopied) {
  change("moving/deep/file");
  scan_settled();
  expect_copied();
  change("top");
  scan_settled();
  change("moving/deep/new");
  scan_settled();
  fs::rename(drive() / "moving", drive() / "elsewhere");
  ASSERT_EQ(rclone().code, 0);
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, NamesInTwoUnicodeNormalForms_AreTwoFiles) {
  change("full/caf\u00e9");
  change("full/cafe\u0301");
  cluster_.scan(node());
  expect_copied();
  change("a/caf\u00e9");
  cluster_.scan(node());
  expect_copied();
  change("a/cafe\u0301");
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, NameThatRcloneCannotCopy_IsReportedAndNotCommitted) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("a/\u201bquoted");
  change("b/file");
  cluster_.scan(node());
  const auto refused = rclone();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("rclone cannot copy a name with U+201B: a/"));
  EXPECT_TRUE(fs::exists(copy() / "b/file"));
  fs::remove(drive() / "a/\u201bquoted");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "a"}).code, 0);
  cluster_.scan(node());
  expect_copied();
}

}  // namespace
}  // namespace spoor::cluster
