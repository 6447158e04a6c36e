// The recipes for restic and for node_exporter, with real scans and the programs that they are for.
#include <gmock/gmock.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

std::string content(const fs::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

class ResticTest : public OneNodeTest {
 protected:
  void SetUp() override {
    std::ofstream(work_ / "password") << "secret";
    const auto made = restic({"init"});
    ASSERT_EQ(made.code, 0) << made.err;
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
    const auto done = recipe("restic-from-feed", {"backup", drive().native()}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
  }

  std::size_t snapshots(const std::string& tag) {
    return json::parse(restic({"snapshots", "--json", "--tag", tag}).out).size();
  }

  // What differs between the drive and what is restored.
  std::string restore() {
    const auto done = recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment());
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
  const auto refused = recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("keep all snapshots since the last full one\n"));
  EXPECT_FALSE(fs::exists(work_ / "restored")) << "nothing was written";
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
  const auto refused = recipe("restic-from-feed", {"backup", drive().native()}, environment());
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
  const auto failed = recipe("restic-from-feed", {"backup", drive().native()}, environment());
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("restic-from-feed: restic snapshots failed with code 1"));
  fs::rename(work_ / "away", work_ / "repository");
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_FullSnapshotForgotten_IsFullAgain) {
  change("a/file");
  cluster_.scan(node());
  EXPECT_NE(recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment()).code, 0);
  back_up();
  ASSERT_EQ(restic({"forget", "latest"}).code, 0);
  change("b/file");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 1U);
  EXPECT_EQ(restore(), "");
}

using NodeExporterTest = OneNodeTest;

TEST_F(NodeExporterTest, TextfileRecipe_WritesLastScanAndTotals) {
  const support::TempDirectory work;
  const fs::path file = work / "spoor.prom";
  EXPECT_NE(recipe("node-exporter-textfile", {file.native()}).code, 0) << "there was no scan yet";
  EXPECT_TRUE(fs::is_empty(work.path())) << "and nothing is left behind";
  change("bucket/a/file");
  change("bucket/quiet/file");
  scan_settled();
  std::ofstream(drive() / "bucket/a/file") << "12345";
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "file", "bucket/a/file"}).code, 0);
  scan_settled();
  const auto written = recipe("node-exporter-textfile", {file.native()});
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string text = content(file);
  for (const char* line :
       {"# HELP spoor_last_scan_number Number of the last scan.", "# TYPE spoor_last_scan_number gauge",
        "spoor_last_scan_number 2", "spoor_last_scan_full 0", "spoor_last_scan_partial 0",
        "spoor_last_scan_errors 0", "# TYPE spoor_last_scan_directories gauge",
        "spoor_last_scan_directories{kind=\"walked\"} 3", "spoor_last_scan_directories{kind=\"skipped\"} 1",
        "spoor_last_scan_directories{kind=\"changed\"} 1", "spoor_last_scan_directories{kind=\"new\"} 0",
        "spoor_last_scan_directories{kind=\"deleted\"} 0", "spoor_usage_files 2", "spoor_usage_directories 3",
        "spoor_usage_bytes 22", "spoor_usage_complete 1"}) {
    EXPECT_THAT('\n' + text, HasSubstr('\n' + std::string(line) + '\n'));
  }
  const json usage = json::parse(cluster_.spoor(node(), {"usage", "--json"}).out);
  EXPECT_THAT(text, HasSubstr("spoor_usage_allocated_bytes " + usage["allocated"].dump() + '\n'));
  std::tm as_of{};
  ASSERT_NE(::strptime(usage["as_of"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &as_of), nullptr);
  EXPECT_THAT(text,
              HasSubstr("spoor_usage_as_of_timestamp_seconds " + std::to_string(::timegm(&as_of)) + '\n'));
  for (const char* name :
       {"spoor_last_scan_finished_timestamp_seconds ", "spoor_last_scan_duration_seconds "}) {
    EXPECT_THAT(text, HasSubstr('\n' + std::string(name)));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(work.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0644));
}

}  // namespace
}  // namespace spoor::cluster
