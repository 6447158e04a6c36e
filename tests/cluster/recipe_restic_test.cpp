// The recipe for restic, with real scans and the program that it is for.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class ResticTest : public OneNodeTest {
 protected:
  void SetUp() override {
    std::ofstream(work_ / "password") << "secret";
    make_restic_repository(work_ / "repository");
  }

  std::vector<std::string> environment() {
    return {"RESTIC_REPOSITORY=" + (work_ / "repository").native(),
            "RESTIC_PASSWORD_FILE=" + (work_ / "password").native(),
            "RESTIC_CACHE_DIR=" + (work_ / "cache").native()};
  }

  support::CommandResult restic(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"env"};
    for (const std::string& each : environment()) command.push_back(each);
    command.emplace_back("restic");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(command);
  }

  void back_up() {
    const auto done = recipe("spoor-restic", {"backup", drive().native()}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
  }

  std::size_t snapshots(const std::string& tag) {
    return json::parse(restic({"snapshots", "--json", "--tag", tag}).out).size();
  }

  // What differs between the drive and what is restored.
  std::string restore() {
    const auto done = recipe("spoor-restic", {"restore", (work_ / "restored").native()}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
    return support::run_command({"diff", "-r", "--exclude=.spoor", drive().native(), work_ / "restored"}).out;
  }

  support::TempDirectory work_;
};

TEST_F(ResticTest, Restore_AllSnapshotsInOrder_EqualsTheDrive) {
  change("bucket/quiet/file");
  change("bucket/a/file");
  change("top");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 1U);
  change("bucket/a/file");
  change("bucket/-b/c/file\nwith a break");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,changes"), 1U);
  const std::string changes = restic({"ls", "latest", "--tag", "restic,files"}).out;
  EXPECT_THAT(changes, HasSubstr("/bucket/a/file"));
  EXPECT_THAT(changes, testing::Not(HasSubstr("quiet"))) << "nothing but what changed";
  back_up();
  EXPECT_EQ(snapshots("restic,changes"), 1U) << "nothing changed";
  change("bucket/a/file");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_DirectoryVanishedAfterScan_Succeeds) {
  change("bucket/a/file");
  change("bucket/b/file");
  cluster_.scan(node());
  back_up();
  fs::remove_all(drive() / "bucket/b");
  change("bucket/a/vanishing/file");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/b"}).code, 0);
  cluster_.scan(node());
  fs::remove_all(drive() / "bucket/a/vanishing");
  back_up();
  EXPECT_EQ(restore(), "");
}

class ForgottenSnapshotTest : public ResticTest, public testing::WithParamInterface<const char*> {};

TEST_P(ForgottenSnapshotTest, SnapshotForgotten_RestoreFailsAndNextBackupIsFull) {
  for (const char* path : {"a/file", "b/file", "c/file"}) {
    change(path);
    cluster_.scan(node());
    back_up();
  }
  const std::string tag = GetParam();
  const auto found = json::parse(restic({"snapshots", "--json", "--tag", "restic," + tag}).out);
  ASSERT_EQ(found.size(), tag == "files" ? 3U : 2U);
  ASSERT_EQ(restic({"forget", found[found.size() - 2]["id"].get<std::string>()}).code, 0);
  const auto refused = recipe("spoor-restic", {"restore", (work_ / "restored").native()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("keep all snapshots since the last full one\n"));
  EXPECT_FALSE(fs::exists(work_ / "restored")) << "nothing was written";
  const std::string listed = recipe("spoor-restic", {"list"}, environment()).out;
  EXPECT_THAT(listed, testing::ContainsRegex(" all\n.*changes, cannot be restored: .* missing"));
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 2U);
  EXPECT_EQ(restore(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, ForgottenSnapshotTest, testing::Values("changes", "files"));

TEST_F(ResticTest, Backup_DriveUnmounted_Fails) {
  change("a/file");
  cluster_.scan(node());
  back_up();
  change("a/more");
  cluster_.scan(node());
  const fs::path away = work_ / "away";
  fs::rename(drive(), away);
  fs::create_directory(drive());
  const auto refused = recipe("spoor-restic", {"backup", drive().native()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("carries no identity"));
  fs::remove(drive());
  fs::rename(away, drive());
  back_up();
  EXPECT_EQ(restore(), "");
}

// The scans before and after the backup know it as the same directory, which needs no second look.
TEST_F(ResticTest, Backup_DirectoryMovedAwayAndBack_IsRestored) {
  change("moving/deep/file");
  cluster_.scan(node());
  back_up();
  change("moving/deep/new");
  change("moving/new");
  change("top");
  cluster_.scan(node());
  fs::rename(drive() / "moving", drive() / "elsewhere");
  back_up();
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_Failed_NextOneCoversTheSameChanges) {
  change("a/file");
  cluster_.scan(node());
  back_up();
  change("b/file");
  cluster_.scan(node());
  fs::rename(work_ / "repository", work_ / "away");
  const auto failed = recipe("spoor-restic", {"backup", drive().native()}, environment());
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("spoor-restic: restic snapshots failed with code 1"));
  fs::rename(work_ / "away", work_ / "repository");
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_FullSnapshotForgotten_IsFullAgain) {
  change("a/file");
  cluster_.scan(node());
  EXPECT_NE(recipe("spoor-restic", {"restore", (work_ / "restored").native()}, environment()).code, 0);
  back_up();
  ASSERT_EQ(restic({"forget", "latest"}).code, 0);
  change("b/file");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 1U);
  EXPECT_EQ(restore(), "");
}

}  // namespace
}  // namespace spoor::cluster
