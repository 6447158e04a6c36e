// The recipes of docs/recipes, with real scans and the programs that they are for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/cluster/one_node.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class BackupTest : public OneNodeTest {
 protected:
  // One round of the recipe, with a consumer of its own.
  support::CommandResult rsync(const std::string& consumer = "rsync") {
    return recipe("spoor-rsync", {drive().native(), copy_.path().native(), consumer});
  }

  // Names, types, sizes, times and bytes.
  void expect_same() {
    const auto differs = support::run_command({"rsync", "-acni", "--exclude=/.spoor", "--delete",
                                               drive().native() + "/", copy_.path().native() + "/"});
    EXPECT_EQ(differs.code, 0) << differs.err;
    EXPECT_EQ(differs.out, "");
  }

  // At some point of its life, its commit included.
  void kill_a_scan(support::Random& random) {
    using std::chrono::steady_clock;
    support::Daemon scan({SPOOR, "--config", cluster_.config_of(node()).native(), "scan"});
    const auto end = steady_clock::now() + std::chrono::microseconds(random.below(60'000));
    while (steady_clock::now() < end) std::this_thread::yield();
    scan.signal(SIGKILL);
    scan.wait();
  }

  support::TempDirectory copy_;
};

TEST_F(BackupTest, RsyncFromFeed_RandomChanges_CopyEqualsTheSource) {
  SPOOR_RANDOM(random);
  support::TreeWriter writer(random, drive());
  writer.fill(60);
  cluster_.scan(node());
  for (int round = 0; round < 25 && !HasFailure(); ++round) {
    for (std::uint64_t i = random.below(6); i > 0; --i) writer.change();
    const std::string changed = writer.take_changed();
    if (!changed.empty()) {
      ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, changed).code, 0);
    }
    if (random.one_in(2)) kill_a_scan(random);
    cluster_.scan(node());
    EXPECT_EQ(cluster_.usage(node()), support::walk_independently({drive()}));
    if (random.one_in(3)) continue;  // more scans before the next copy
    // What comes after the scan may be copied, too, and be gone before the next one.
    const bool goes_on = random.one_in(2);
    if (goes_on) writer.change();
    const auto copied = rsync();
    EXPECT_EQ(copied.code, 0) << copied.err;
    if (!goes_on) expect_same();
  }
}

// rsync ends with 24 where a listed directory lies in one that is gone.
TEST_F(BackupTest, Rsync_DirectoryVanishedAfterScan_Succeeds) {
  change("bucket/file");
  cluster_.scan(node());
  ASSERT_EQ(rsync().code, 0);
  change("bucket/above/listed/file");
  change("bucket/more");
  cluster_.scan(node());
  fs::remove_all(drive() / "bucket" / "above");
  const auto copied = rsync();
  EXPECT_EQ(copied.code, 0) << copied.err;
  expect_same();
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/above"}).code, 0);
  cluster_.scan(node());
  EXPECT_EQ(rsync().code, 0);
  EXPECT_EQ(changes({"--consumer", "rsync"}).out, "") << "it was read";
}

// It is the same directory in the scans before and after the copy, which needs no second look.
TEST_F(BackupTest, Rsync_DirectoryMovedAwayAndBack_StaysInTheCopy) {
  change("moving/deep/file");
  scan_settled();
  ASSERT_EQ(rsync().code, 0);
  change("moving/deep/new");
  change("moving/new");
  // More names than a pipe holds.
  for (int i = 0; i < 2'000; ++i) {
    const fs::path each = drive() / "moving" / (std::to_string(i) + std::string(200, 'x'));
    fs::create_directory(each);
    std::ofstream(each / "new") << i;
  }
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving"}).code, 0);
  scan_settled();
  change("top");
  scan_settled();
  fs::rename(drive() / "moving", drive() / "elsewhere");
  ASSERT_EQ(rsync().code, 0);
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  ASSERT_EQ(rsync().code, 0);
  expect_same();
}

TEST_F(BackupTest, Rsync_DriveUnmounted_FailsAndKeepsTheCopy) {
  change("a/file");
  cluster_.scan(node());
  ASSERT_EQ(rsync().code, 0);
  change("top");
  cluster_.scan(node());
  const support::TempDirectory aside;
  fs::rename(drive(), aside / "drive");
  fs::create_directory(drive());
  for (const char* consumer : {"rsync", "new"}) {
    const auto refused = rsync(consumer);
    EXPECT_EQ(refused.code, 1);
    EXPECT_NE(refused.err.find("carries no identity"), std::string::npos) << refused.err;
  }
  EXPECT_TRUE(fs::exists(copy_ / "a/file"));
  fs::remove(drive());
  fs::rename(aside / "drive", drive());
  EXPECT_EQ(rsync().code, 0);
  expect_same();
}

TEST_F(BackupTest, Rsync_RelativeDestination_IsTheSameInAllSteps) {
  const fs::path before = fs::current_path();
  fs::current_path(copy_.path().parent_path());
  const std::string copy = copy_.path().filename().native();
  for (const char* path : {"bucket/a/file", "bucket/a/more"}) {
    change(path);
    cluster_.scan(node());
    EXPECT_EQ(recipe("spoor-rsync", {drive().native(), copy}).code, 0);
  }
  fs::current_path(before);
  EXPECT_FALSE(fs::exists(drive() / copy)) << "nothing is written to the drive";
  expect_same();
}

TEST_F(BackupTest, Rsync_CopyFailed_IsRepeatedByTheNextRun) {
  change("bucket/a/file");
  scan_settled();
  ASSERT_EQ(rsync().code, 0);
  change("bucket/b/file");
  scan_settled();
  // No user, root included, can make a directory below a file.
  const support::TempDirectory other;
  std::ofstream(other / "file") << "in the way";
  const auto failed = recipe("spoor-rsync", {drive().native(), (other / "file" / "below").native(), "rsync"});
  EXPECT_NE(failed.code, 0) << failed.out;
  EXPECT_EQ(changes({"--consumer", "rsync"}).out, "bucket/\nbucket/b/\n");
  EXPECT_EQ(rsync().code, 0);
  expect_same();
}

TEST_F(BackupTest, Consumer_Committed_ReadsEachChangeOnce) {
  change("bucket/a/file");
  scan_settled();
  const auto unknown = changes({"--consumer", "c"});
  EXPECT_EQ(unknown.code, 4);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(changes({"--consumer", "c", "--commit"}).code, 4);
  EXPECT_EQ(changes({"--consumer", "c"}).code, 0) << "it reads on from here";
  change("bucket/a/more");
  scan_settled();
  for (int times = 0; times < 2; ++times) EXPECT_EQ(changes({"--consumer", "c"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--consumer", "c", "--commit"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--consumer", "c"}).out, "");
  EXPECT_EQ(changes({"--since", "1"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--latest"}).out, "2\n");
  EXPECT_EQ(changes({"--consumer", "c", "--forget"}).code, 0);
  EXPECT_EQ(changes({"--consumer", "c"}).code, 4);
}

TEST_F(BackupTest, Consumers_AreListedWithTheirLag) {
  change("bucket/a/file");
  cluster_.scan(node());
  EXPECT_EQ(changes({"--consumers"}).out, "no consumer has committed yet\n");
  EXPECT_EQ(changes({"--consumer", "late", "--commit"}).code, 4);
  for (int i = 0; i < 2; ++i) {
    change("bucket/a/" + std::to_string(i));
    cluster_.scan(node());
  }
  EXPECT_EQ(changes({"--consumer", "in time", "--commit"}).code, 4);
  auto listed = nlohmann::json::parse(changes({"--consumers", "--json"}).out);
  EXPECT_EQ(listed["latest"], 3);
  ASSERT_EQ(listed["consumers"].size(), 2U);
  EXPECT_EQ(listed["consumers"][0]["consumer"], "in time");
  EXPECT_EQ(listed["consumers"][0]["behind"], 0);
  EXPECT_EQ(listed["consumers"][1]["scan"], 1);
  EXPECT_EQ(listed["consumers"][1]["behind"], 2);
  ASSERT_EQ(cluster_.spoor(node(), {"scan", "--rebuild"}).code, 0);
  listed = nlohmann::json::parse(changes({"--consumers", "--json"}).out);
  EXPECT_TRUE(listed["consumers"][1]["behind"].is_null()) << listed;
  EXPECT_NE(changes({"--consumers"}).out.find("starts over"), std::string::npos);
}

TEST_F(BackupTest, ChangesCommand_PathWithNewline_NeedsNulOrJsonOutput) {
  change("bucket/a/file");
  cluster_.scan(node());
  change("bucket/line\nbreak/file");
  change("top");
  fs::remove_all(drive() / "bucket" / "a");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, std::string("bucket/line\nbreak/file")).code, 0);
  cluster_.scan(node());
  const auto refused = changes({"--since", "1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("use -0"), std::string::npos) << refused.err;
  EXPECT_EQ(changes({"--since", "1", "-0"}).out, std::string("./\0bucket/\0bucket/line\nbreak/\0", 30));
  EXPECT_EQ(changes({"--since", "1", "--deleted"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--since", "1", "--json"}).out,
            "{\"scan\":2,\"path\":\"\",\"change\":\"changed\"}\n"
            "{\"scan\":2,\"path\":\"bucket\",\"change\":\"changed\"}\n"
            "{\"scan\":2,\"path\":\"bucket/a\",\"change\":\"deleted\"}\n"
            "{\"scan\":2,\"path\":\"bucket/line\\nbreak\",\"change\":\"new\"}\n");
}

TEST_F(BackupTest, ChangesCommand_Everything_ListsWhatTheLastScanFound) {
  change("bucket/a/file");
  cluster_.scan(node());
  change("bucket/b/file");
  fs::remove_all(drive() / "bucket" / "a");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  cluster_.scan(node());
  fs::create_directory(drive() / "later");
  const std::string all = "bucket/\nbucket/b/\n";
  EXPECT_EQ(changes({"--everything"}).out, all);
  EXPECT_EQ(changes({"--everything", "--drive", drive().native()}).out, all);
  EXPECT_EQ(changes({"--everything", "--deleted"}).out, "");
}

TEST_F(BackupTest, ChangesCommand_WrongArguments_AreRefused) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--since", "1", "--consumer", "c"},
                                             {"--since", "1", "--after", "1"},
                                             {"--since", "1", "--everything"},
                                             {"--everything", "--commit"},
                                             {"--since", "1", "--commit"},
                                             {"--since", "x"}}) {
    EXPECT_EQ(changes(bad).code, 2);
  }
  EXPECT_EQ(changes({"--since", "1"}).code, 1) << "there was no scan yet";
}

}  // namespace
}  // namespace spoor::cluster
