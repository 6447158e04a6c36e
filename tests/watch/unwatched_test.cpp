// A drive is to be watched, and spoor-watch does not watch it, or not always: a scan that exits 0 has the
// true totals all the same. SPOOR_UNWATCHED_ROUNDS sets how many random rounds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

int unwatched_rounds() {
  const char* const given = std::getenv("SPOOR_UNWATCHED_ROUNDS");
  if (given != nullptr) return std::atoi(given);
  return support::is_sanitized ? 5 : 15;
}

class UnwatchedTest : public WatchTest {
 protected:
  void SetUp() override { mount(FileSystem::ext4); }

  void change(const std::string& name) {
    fs::create_directories(node().drive() / "tree" / name);
    std::ofstream(node().drive() / "tree" / name / "file", std::ios::app) << name;
  }

  // Twice, so that nothing is marked any more.
  void start_and_scan(const std::string& unwatched = "walk") {
    node_ = std::make_unique<WatchedNode>(disk().path(), nullptr,
                                          nlohmann::json{{"watch", {{"unwatched", unwatched}}}});
    node_->start_daemon();
    change("first");
    node_->start_watch();
    last_scan_ = node_->scan();
    expect_truth();
  }

  // The scan walked all of the drive, for this reason.
  void expect_walked(const std::string& reason, const std::string& patience = "60s") {
    expect_truth(patience);
    ASSERT_THAT(drive_gaps(last_scan_), Not(IsEmpty())) << last_scan_;
    EXPECT_THAT(drive_gaps(last_scan_)[0]["reason"].get<std::string>(), HasSubstr(reason));
  }
};

constexpr const char* short_time = "300ms";  // for a scan that is not responded to

// What changes here is marked here, so the marks of others are not needed.
TEST_F(UnwatchedTest, OwnDaemonAlone_PeerThatIsDownCostsNothing) {
  start_and_scan();
  const auto scan_with = [&](const std::string& daemons) {
    return node().spoor({"--set", R"(peers.static=["unix:/nowhere/spoor.sock"])", "--set",
                         "scan.daemons=" + daemons, "--set", "watch.timeout=60s", "scan", "--json"});
  };
  EXPECT_EQ(scan_with("all").code, 3);
  const auto first = scan_with("own");
  EXPECT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, HasSubstr("scan.daemons or node.name has changed"));
  change("second");
  const auto later = scan_with("own");
  EXPECT_EQ(later.code, 0) << later.err;
  EXPECT_THAT(later.out, HasSubstr(R"("mode": "incremental")"));
  EXPECT_EQ(node().usage(), support::walk_independently({node().drive()}));
}

TEST_F(UnwatchedTest, WatchKilled_EachScanWalksTheDrive) {
  start_and_scan();
  node().kill_watch();
  for (const char* const name : {"second", "third"}) {
    change(name);
    expect_walked("is not watched: spoor-watch did not respond within 0.3 s", short_time);
  }
  EXPECT_EQ(node().usage().files, 3U);
  node().start_watch();
  change("fourth");
  expect_walked("changes before spoor-watch started");
  change("fifth");
  expect_truth();
  EXPECT_THAT(drive_gaps(last_scan_), IsEmpty()) << last_scan_;
}

TEST_F(UnwatchedTest, WatchThatNeverRan_EachScanWalksTheDrive) {
  node_ = std::make_unique<WatchedNode>(disk().path());
  node().start_daemon();
  change("first");
  last_scan_ = node().scan(short_time);
  change("second");
  expect_walked("is not watched: spoor-watch did not respond", short_time);
}

TEST_F(UnwatchedTest, DaemonThatIsDown_LeavesNoTotalVouchedFor) {
  start_and_scan();
  EXPECT_EQ(node().stop_daemon(), 0);
  change("second");
  EXPECT_NE(node().run_scan().code, 0);
}

// Its events wait in the kernel: once it runs again, nothing was missed.
TEST_F(UnwatchedTest, WatchStopped_ScanWalks_AndContinued_IsNoGap) {
  start_and_scan();
  node().watch().freeze();
  change("second");
  expect_walked("is not watched: spoor-watch did not respond", short_time);
  node().watch().signal(SIGCONT);
  change("third");
  expect_truth();
  EXPECT_THAT(drive_gaps(last_scan_), IsEmpty()) << last_scan_;
}

TEST_F(UnwatchedTest, PartialIsAskedFor_ScanSaysWhatItLeavesOut) {
  start_and_scan("partial");
  node().kill_watch();
  change("second");
  const auto result = node().run_scan(short_time);
  EXPECT_EQ(result.code, 3) << result.err;
  const auto scan = nlohmann::json::parse(result.out);
  EXPECT_EQ(scan["partial"], true);
  EXPECT_THAT(scan["unwatched"].at(0).get<std::string>(),
              HasSubstr("is not watched: spoor-watch did not respond"));
  EXPECT_LT(scan["dirs_walked"], 2);
  node().start_watch();
  expect_walked("changes before spoor-watch started");
}

// The kernel reports nothing there, or not all: each scan walks it.
class UnwatchableTest : public UnwatchedTest {
 protected:
  void TearDown() override {
    if (is_mounted_) ::umount2((directory_ / "drive").c_str(), MNT_DETACH);
  }

  fs::path make(const std::string& name) {
    fs::create_directory(disk().path() / name);
    return disk().path() / name;
  }

  void expect_walks() {
    is_mounted_ = true;
    node_ = std::make_unique<WatchedNode>(directory_ / "drive");
    node().start_daemon();
    node().start_watch("0 of 1");
    change("first");
    last_scan_ = node().scan();
    for (const char* const name : {"second", "third"}) {
      change(name);
      expect_walked("cannot watch");
    }
    EXPECT_EQ(node().stop_watch(), 0);
    EXPECT_EQ(node().stop_daemon(), 0);
  }

  bool is_mounted_ = false;
};

TEST_F(UnwatchableTest, Overlay_EachScanWalksIt) {
  const std::string options = "lowerdir=" + make("lower").native() + ",upperdir=" + make("upper").native() +
                              ",workdir=" + make("work").native();
  fs::create_directory(directory_ / "drive");
  if (::mount("overlay", (directory_ / "drive").c_str(), "overlay", 0, options.c_str()) != 0)
    GTEST_SKIP() << "needs overlayfs";
  expect_walks();
}

TEST_F(UnwatchableTest, Fuse_EachScanWalksIt) {
  fs::create_directory(directory_ / "drive");
  const auto mounted =
      support::run_command({"bindfs", make("source").native(), (directory_ / "drive").native()});
  if (mounted.code != 0) GTEST_SKIP() << "needs bindfs and /dev/fuse: " << mounted.err;
  expect_walks();
}

// The watcher is killed, stopped, continued and started, the drive unmounted and mounted, and changed in
// between: no scan that exits 0 has other totals than a walk.
TEST_F(UnwatchedTest, RandomFailures_ScanThatSucceeds_HasTheTrueTotals) {
  SPOOR_RANDOM(random);
  start_and_scan();
  bool runs = true;
  bool is_stopped = false;
  const std::vector<std::function<void()>> failures{
      [&] {
        if (!runs) return;
        node().kill_watch();
        runs = is_stopped = false;
      },
      [&] {
        if (runs) return;
        node().start_watch();
        runs = true;
      },
      [&] {
        if (!runs || is_stopped) return;
        node().watch().freeze();
        is_stopped = true;
      },
      [&] {
        if (!runs || !is_stopped) return;
        node().watch().signal(SIGCONT);
        is_stopped = false;
      },
      [&] {
        if (is_stopped) return;  // it may hold the drive
        ASSERT_TRUE(disk().unmount());
        disk().mount();
      },
  };
  for (int round = 0; round < unwatched_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (std::uint64_t count = random.below(3); count > 0; --count) random.pick(failures)();
    for (std::uint64_t count = random.below(4); count > 0; --count)
      change("d" + std::to_string(random.below(30)));
    const auto result = node().run_scan(short_time);
    ASSERT_TRUE(result.code == 0 || result.code == 3) << result.code << result.err;
    if (result.code != 0) continue;
    EXPECT_EQ(node().usage(), support::walk_independently({node().drive()}))
        << result.out << node().watch().log();
  }
  if (is_stopped) node().watch().signal(SIGCONT);
  if (!runs) node().start_watch();
  // The watcher looks once a second whether a drive that was unmounted is there again.
  for (int scans = 0; scans < 1000 && (scans == 0 || !drive_gaps(last_scan_).empty()); ++scans)
    last_scan_ = node().scan();
  change("last");
  expect_truth();
  EXPECT_THAT(drive_gaps(last_scan_), IsEmpty()) << last_scan_;
}

}  // namespace
}  // namespace spoor::watch
