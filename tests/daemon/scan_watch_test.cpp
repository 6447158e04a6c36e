#include "daemon/status/scan_watch.h"

#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <fstream>
#include <latch>

#include "daemon/process/task.h"
#include "daemon/status/status_metrics.h"
#include "scanner/store/usage_database.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {
namespace {

class ScanWatchTest : public testing::Test {
 protected:
  void scan(scanner::WalkFigures figures, std::uint64_t errors = 0) {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    scanner::ScanRecord record;
    record.figures = figures;
    record.errors = errors;
    transaction->commit(record);
  }

  const ScanFigures& refresh() {
    refresh_begins();
    finish();
    return watch_.figures();
  }

  void refresh_begins() {
    boost::asio::co_spawn(context_, watch_.refresh(), [this](const std::exception_ptr& failure) {
      rethrow(failure);
      ++refreshed_;
    });
  }

  // Until nothing is under way any more.
  void finish() {
    context_.restart();
    context_.run();
  }

  const support::TempDirectory directory_;
  const std::filesystem::path file_ = directory_ / "scan.db";
  boost::asio::io_context context_;
  boost::asio::thread_pool pool_{1};
  ScanWatch watch_{context_, pool_, file_, std::chrono::milliseconds(20)};
  int refreshed_ = 0;
};

TEST_F(ScanWatchTest, BeforeTheFirstScan_HasNoFigures) {
  const ScanFigures& figures = refresh();
  EXPECT_FALSE(figures.has_database);
  EXPECT_FALSE(figures.last);
  const std::string text = scan_metrics(figures);
  EXPECT_NE(text.find("\nspoor_last_scan_finished_timestamp_seconds 0\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("spoor_last_scan_number"), std::string::npos);
  EXPECT_EQ(scan_metrics({}).find("spoor_last_scan"), std::string::npos) << "not known yet";
  EXPECT_EQ(scan_metrics(figures).find("spoor_scan_database_ok"), std::string::npos);
}

// What was there before the daemon would look like a burst after each of its starts.
TEST_F(ScanWatchTest, ScansBeforeTheStart_AreNotCounted) {
  scan({.audited = 100, .missed = 50}, 7);
  EXPECT_EQ(refresh().scans, 0U);
  EXPECT_EQ(watch_.figures().last->figures.missed, 50U);
  scan({.audited = 10, .missed = 1}, 2);
  scan({.audited = 20, .missed = 3});
  const ScanFigures& figures = refresh();
  EXPECT_EQ(figures.scans, 2U);
  EXPECT_EQ(figures.audited, 30U);
  EXPECT_EQ(figures.missed, 4U);
  EXPECT_EQ(figures.errors, 2U);
  EXPECT_EQ(figures.last->id, 3U);
  EXPECT_EQ(refresh().scans, 2U) << "none is counted twice";
}

TEST_F(ScanWatchTest, FirstScanEver_IsCounted) {
  refresh();
  scan({.audited = 1});
  EXPECT_EQ(refresh().scans, 1U);
}

TEST_F(ScanWatchTest, DatabaseRebuilt_ItsFirstScanIsCounted) {
  for (int i = 0; i < 5; ++i) scan({});
  refresh();
  for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
    std::filesystem::remove(entry.path());
  }
  scan({.missed = 2});
  EXPECT_EQ(refresh().scans, 1U);
  EXPECT_EQ(watch_.figures().missed, 2U);
}

TEST_F(ScanWatchTest, DatabaseUnreadable_IsShownAndTheLastScanStays) {
  scan({.missed = 2});
  refresh();
  std::ofstream(file_, std::ios::trunc) << "this is no database";
  const ScanFigures& figures = refresh();
  EXPECT_FALSE(figures.ok);
  EXPECT_TRUE(figures.last);
  EXPECT_NE(scan_metrics(figures).find("\nspoor_scan_database_ok 0\n"), std::string::npos);
}

TEST_F(ScanWatchTest, LimitsUnreadable_TheScansAreKnown) {
  {
    auto database = scanner::UsageDatabase::open(file_).value();
    auto transaction = database.begin_scan().value();
    transaction->set_setting(scanner::usage_limits_key, "no JSON");
    transaction->commit({});
  }
  const ScanFigures& figures = refresh();
  EXPECT_TRUE(figures.ok);
  EXPECT_TRUE(figures.last);
  EXPECT_TRUE(figures.limits.empty());
}

TEST_F(ScanWatchTest, SlowDisk_ReturnsTheFormerFigures) {
  scan({});
  refresh();
  scan({});
  std::latch disk_answers(1);
  boost::asio::post(pool_, [&] { disk_answers.wait(); });
  refresh_begins();
  refresh_begins();
  context_.restart();
  while (refreshed_ < 3) context_.run_one();
  EXPECT_EQ(watch_.figures().scans, 0U) << "the former figures";
  refresh_begins();
  while (refreshed_ < 4) context_.run_one();
  disk_answers.count_down();
  context_.run();
  EXPECT_EQ(watch_.figures().scans, 1U) << "the reading went on";
  scan({});
  EXPECT_EQ(refresh().scans, 2U);
}

}  // namespace
}  // namespace spoor::daemon
