// A scan as a whole: what makes it full, what it keeps, and what an interrupted one leaves.

#include "scanner/scan.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "scanner/errors.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class ScanTest : public ScannedNode {
 protected:
  static tracker::NamespaceRules rules(std::vector<std::string> exclude) {
    return tracker::NamespaceRules({std::move(exclude)});
  }
};

TEST_F(ScanTest, RulesChanged_WalksEverythingOnce) {
  make_file("a/keep");
  make_file("a/1.tmp");
  make_file("a/trash/1");
  scan();
  EXPECT_EQ(files("a"), 3U);

  options.rules = rules({"*.tmp", "trash"});
  const ScanReport report = scan();
  EXPECT_TRUE(report.record.walked_everything);
  EXPECT_NE(report.record.reason.find("rules"), std::string::npos);
  EXPECT_EQ(report.record.figures.dirs_deleted, 1U);
  EXPECT_EQ(files("a"), 1U);
  EXPECT_FALSE(scan().record.walked_everything);

  options.rules = {};
  EXPECT_TRUE(scan().record.walked_everything);
  expect_exact();
}

TEST_F(ScanTest, UnreadableWhenRulesChanged_IsReadUnderNewRulesLater) {
  make_file("a/b/1.tmp");
  make_file("a/b/c/1.tmp");
  scan();
  options.rules = rules({"*.tmp"});
  reader.open_errors["a/b"] = EIO;
  scan();
  EXPECT_EQ(files("a"), 2U);
  reader.repair();
  scan();
  EXPECT_EQ(files("a"), 0U);
}

TEST_F(ScanTest, TrackerGap_WalksEverything) {
  make_file("a/1");
  scan();
  make_file("a/2");
  tracker = std::make_unique<tracker::Tracker>(
      tracker::Tracker::Options{.levels = tracker::LevelSchedule(100, 0.01)}, clock,
      tracker::Tracker::born(tracker::InstanceId::random(), clock));
  const ScanReport report = scan();
  EXPECT_TRUE(report.record.walked_everything);
  EXPECT_EQ(report.record.reason, "the tracker can't answer from this cycle on");
  expect_exact();
}

// A tracker has little memory for closed cycles, and other scanners open more of them while one scan runs.
class ScanLongerThanHistoryTest : public ScannedNode {
 protected:
  ScanLongerThanHistoryTest()
      : ScannedNode(
            {"drive"},
            {.levels = tracker::LevelSchedule(200, 0.1), .history_max = 3, .memory_bytes_max = 8'000}) {
    for (const char* path : {"a/1", "b/1", "c/1"}) make_file(path);
    scan();
    mark("", tracker::MarkKind::tree);
  }

  // In a directory that the scan has read already; the tracker drops its mark.
  void outlast_history() {
    make_file("a/late");
    mark("a/late");
    const tracker::CycleId marked_in = tracker->status().current;
    for (int cycle = 0; tracker->state().oldest_kept <= marked_in; ++cycle) {
      ASSERT_LT(cycle, 50);
      for (int number = 0; number < 6000; ++number) mark(fmt::format("other/{}/{}", cycle, number));
      tracker->advance(next(tracker->status().current));
    }
  }

  void expect_gap_in_next_scan() {
    const ScanReport report = scan();
    EXPECT_FALSE(has_resumed);
    EXPECT_EQ(report.record.reason, "the tracker can't answer from this cycle on");
    expect_exact();
    EXPECT_FALSE(scan().record.walked_everything) << "once";
  }
};

TEST_F(ScanLongerThanHistoryTest, NextScan_WalksEverything) {
  reader.before_read = [this](std::string_view path) {
    if (path == "c") outlast_history();
  };
  EXPECT_FALSE(scan().record.reason.empty());
  reader.before_read = nullptr;
  expect_gap_in_next_scan();
}

TEST_F(ScanLongerThanHistoryTest, ResumedAfterThat_NextScanWalksEverything) {
  resumes = true;
  ASSERT_TRUE(stop_at("c"));
  outlast_history();
  scan();
  EXPECT_TRUE(has_resumed);
  expect_gap_in_next_scan();
}

// What was marked on other nodes, or by a tracker of another name, may not be read any more.
TEST_F(ScanTest, MarksOfOtherNodesNotReadFromNowOn_AreAFullScanOnce) {
  scan();
  for (const char* node : {"n1", "n2", ""}) {
    options.own_marks_of = node;
    const ScanReport report = scan();
    EXPECT_TRUE(report.record.walked_everything) << node;
    EXPECT_EQ(report.record.reason, "scan.daemons or node.name has changed");
    EXPECT_FALSE(scan().record.walked_everything);
  }
}

TEST_F(ScanTest, TreeMarkOnRoot_IsAFullScan) {
  scan();
  tracker::MarkSet everything;
  everything.add_tree("");
  const auto report = run_scan(*database, options, ScanInput{everything}, {reader, clock, waiter});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->record.walked_everything);
  EXPECT_FALSE(report->record.reason.empty());
}

TEST_F(ScanTest, ScanRecord_MatchesTheReport) {
  make_file("a/1", 100);
  partial = true;
  const ScanReport report = scan();
  const auto records = database->scans(10).value();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].id, report.record.id);
  EXPECT_EQ(records[0].cycle, report.record.cycle);
  EXPECT_EQ(records[0].bytes, 100U);
  EXPECT_TRUE(records[0].partial);
  EXPECT_EQ(records[0].figures.dirs_walked, 2U);
  EXPECT_EQ(records[0].started_at, report.record.started_at);
  EXPECT_GT(records[0].finished_at, records[0].started_at) << "gathering counts";
}

TEST_F(ScanTest, Peers_AdvanceWithTheResults) {
  scan();
  const auto before = database->peers().value();
  scan();
  EXPECT_NE(database->peers().value(), before);
}

TEST_F(ScanTest, StartLevel_IsKeptByFullIncrementalAndPartialScans) {
  const auto kept_by_a_scan = [&](std::size_t level) {
    start_level = level;
    scan();
    return database->start_level().value();
  };
  EXPECT_EQ(kept_by_a_scan(3), 3U) << "a full one";
  EXPECT_EQ(kept_by_a_scan(4), 4U);
  partial = true;
  EXPECT_EQ(kept_by_a_scan(5), 5U);
  EXPECT_EQ(kept_by_a_scan(0), 0U);
}

// The whole of it: what was marked before the scan that was killed is walked by the next one.
TEST_F(ScanTest, InterruptedScan_KeepsPeersAndTotals) {
  for (const char* path : {"a/1", "b/1", "c/1"}) make_file(path);
  scan();
  const auto before = database->peers().value();
  make_file("a/2");
  make_file("c/2");
  mark("a");
  mark("c");
  start_level = 5;
  ASSERT_TRUE(stop_at("c"));
  EXPECT_EQ(database->peers().value(), before);
  EXPECT_EQ(database->start_level().value(), 0U);
  EXPECT_EQ(files(""), 3U);
  EXPECT_EQ(database->scans(10).value().size(), 1U);
  scan();
  expect_exact();
}

TEST_F(ScanTest, StopWhileRateLimited_EndsTheScan) {
  make_file("a/b/1");
  options.max_dirs_per_second = 1;
  fakes::ManualClock own_clock;
  class StoppingWaiter final : public Waiter {
   public:
    explicit StoppingWaiter(std::stop_source& source) : source_(source) {}
    void wait(base::SteadyTime, const std::stop_token&) override { source_.request_stop(); }

   private:
    std::stop_source& source_;
  } stopping(stop);
  const tracker::MarkSet none;
  const auto report =
      run_scan(*database, options, ScanInput{none}, {reader, clock, stopping, stop.get_token()});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Errc::interrupted);
  EXPECT_EQ(reader.read_paths.size(), 1U);
}

TEST_F(ScanTest, MaxDirsPerSecond_LimitsTheScanRate) {
  for (int number = 0; number < 20; ++number) make_directory(std::to_string(number));
  options.max_dirs_per_second = 2;
  const auto start = clock.steady_now();
  const ScanReport report = scan();
  EXPECT_GE(clock.steady_now() - start, std::chrono::seconds(10));
  EXPECT_GE(report.duration, std::chrono::seconds(10));
}

TEST_F(ScanTest, Progress_IsReported) {
  for (int number = 0; number < 10; ++number) make_directory("d/" + std::to_string(number));
  options.progress_every = 4;
  std::vector<Progress> told;
  progress = [&](const Progress& now) { told.push_back(now); };
  scan();
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].figures.dirs_walked, 4U);
  EXPECT_EQ(told[0].path, on_drive("d/1").native());
}

TEST_F(ScanTest, SecondScanTransaction_IsRefusedWhileReadingContinues) {
  scan();
  auto second = UsageDatabase::open(file());
  ASSERT_TRUE(second);
  second->handle().exec("PRAGMA busy_timeout = 1");
  auto first = database->begin_scan();
  ASSERT_TRUE(first);
  const auto refused = second->begin_scan();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::database_failed);
  EXPECT_TRUE(second->peers()) << "reading goes on";
}

TEST_F(ScanTest, FullDisk_FailsTheScanAndKeepsPeers) {
  make_file("a/1");
  scan();
  const auto before = database->peers().value();
  for (int number = 0; number < 2000; ++number) make_directory("many/" + std::to_string(number));
  mark("many");
  database->handle().exec("PRAGMA max_page_count = 1");  // clamped to the present size
  const auto report = try_scan();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Errc::database_failed);
  EXPECT_NE(report.error().message.find("full"), std::string::npos) << report.error().message;
  EXPECT_EQ(database->peers().value(), before);
  database->handle().exec("PRAGMA max_page_count = 1000000000");
  scan();
  expect_exact();
}

TEST(ScanLockTest, ConcurrentScan_IsRefused) {
  const support::TempDirectory data;
  {
    const auto first = lock_scan(data.path());
    ASSERT_TRUE(first) << first.error().message;
    const auto second = lock_scan(data.path());
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Errc::scan_running);
    EXPECT_NE(second.error().message.find("scan.lock"), std::string::npos);
  }
  EXPECT_TRUE(lock_scan(data.path())) << "the end of a scan frees the lock";
  EXPECT_EQ(lock_scan("/nonexistent/spoor").error().code, std::errc::no_such_file_or_directory);
}

}  // namespace
}  // namespace spoor::scanner
