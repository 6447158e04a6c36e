// Changes that nobody marked: found within a period, counted and named, and the totals mended.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "scanner/stored_tree.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class AuditTest : public ScannedNode {
 protected:
  AuditTest() : ScannedNode({"one", "two"}) {
    options.audit_period = 100h;
    // The files are made now; later on, what was changed on them was changed long ago.
    clock.set_wall(base::SystemClock().wall_now() + 1h);
  }

  void make_tree() {
    for (int number = 0; number < 50; ++number) {
      make_file("a/" + std::to_string(number) + "/file");
      write_file(on_drive("b/" + std::to_string(number) + "/file", 1), 10);
    }
    mark("a", tracker::MarkKind::tree);
    mark("b", tracker::MarkKind::tree);
    static_cast<void>(scan());
  }

  // Scans each hour for one period; all that they missed.
  std::vector<std::string> scan_for_a_period() {
    std::vector<std::string> missed;
    for (int hour = 0; hour < 100; ++hour) {
      clock.advance(1h);
      const ScanReport report = scan_counting_reads();
      audited_most = std::max(audited_most, report.audit.audited);
      audited += report.audit.audited;
      missed.insert(missed.end(), report.audit.missed_paths.begin(), report.audit.missed_paths.end());
      EXPECT_EQ(report.record.figures.missed, report.audit.missed_paths.size());
    }
    return missed;
  }

  std::uint64_t audited = 0;
  std::uint64_t audited_most = 0;
};

TEST_F(AuditTest, EveryDirectoryIsReadOnceInAPeriodAnEvenShareInEachScan) {
  make_tree();
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 104U) << "two roots, a and b, and fifty in each";
  EXPECT_LE(audited_most, 3U);
}

TEST_F(AuditTest, OffItReadsNothing) {
  options.audit_period = 0h;
  make_tree();
  make_file("a/7/unmarked");
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 0U);
  EXPECT_FALSE(scan().audit.oldest_total);
}

TEST_F(AuditTest, ChangesThatNobodyMarkedAreCountedNamedAndMended) {
  make_tree();
  make_file("a/7/unmarked", 1000);
  write_file(on_drive("b/9/file", 1), 5000);
  make_file("a/new/deep/file");
  remove("a/3/file");
  EXPECT_THAT(scan_for_a_period(), UnorderedElementsAre("a/7", "b/9", "a", "a/3"));
  expect_exact();
}

TEST_F(AuditTest, ADirectoryThatIsGoneIsAChangeOfTheOneAbove) {
  make_tree();
  remove("a/20");
  const auto missed = scan_for_a_period();
  EXPECT_FALSE(missed.empty());
  expect_exact();
}

TEST_F(AuditTest, AnotherDirectoryInItsPlaceIsFound) {
  make_tree();
  make_file("b/other/file", 77);
  std::filesystem::rename(on_drive("b/5", 1), temp / "aside");
  std::filesystem::create_directories(on_drive("b", 1));
  std::filesystem::rename(on_drive("b/other", 0), on_drive("b/5", 1));
  EXPECT_FALSE(scan_for_a_period().empty());
  expect_exact();
}

TEST_F(AuditTest, WhereListingsGiveOtherInodeNumbersNothingIsMissed) {
  reader.inodes_unlike_listed = true;
  make_tree();
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 104U);
}

// Nobody scanned for a long time: marks come first all the same.
TEST_F(AuditTest, OneScanReadsNoLongerThanTenMinutes) {
  make_tree();
  clock.advance(options.audit_period);
  reader.before_read = [&](std::string_view) { clock.advance(30s); };
  EXPECT_EQ(scan().audit.audited, 20U);
  EXPECT_EQ(scan().audit.audited, 20U);
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
}

// Its share is left to the next scan: nothing of the round is lost, nor read twice.
TEST_F(AuditTest, OneThatIsKilledInItIsGoneOnWithWithoutIt) {
  resumes = true;
  make_tree();
  clock.advance(50h);
  std::uint64_t all = scan().audit.audited;
  EXPECT_EQ(all, 52U);
  make_file("a/3/marked", 10);
  mark("a/3/marked");
  clock.advance(10h);
  int reads = 0;
  reader.before_read = [&](std::string_view) {
    clock.advance(1s);
    if (++reads == 4) stop.request_stop();
  };
  ASSERT_FALSE(try_scan());
  reader.before_read = nullptr;
  stop = {};
  const ScanReport resumed = scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_EQ(resumed.audit.audited, 0U);
  expect_exact();
  all += scan().audit.audited;
  EXPECT_NEAR(static_cast<double>(all), 62, 2);
  clock.advance(40h);
  all += scan().audit.audited;
  EXPECT_GE(all, 100U) << "but for those that the walk read";
  EXPECT_LE(all, 104U);
}

TEST_F(AuditTest, WhatChangesJustNowIsReadAndNotCalledMissed) {
  make_tree();
  clock.set_wall(base::SystemClock().wall_now() - 1h);
  make_file("a/7/file", 333);
  // A mark of it comes with the next scan.
  std::uint64_t missed = 0;
  for (int hour = 0; hour < 101; ++hour) {
    options.audit_period = 1ns;
    missed += scan().record.figures.missed;
  }
  EXPECT_EQ(missed, 0U);
}

TEST_F(AuditTest, MarkedDirectoriesAreNotReadTwice) {
  make_tree();
  clock.advance(200h);
  for (int number = 0; number < 50; ++number) mark("a/" + std::to_string(number) + "/file");
  const ScanReport report = scan_counting_reads();
  EXPECT_EQ(reader.read_paths.count("a/7"), 1U);
  EXPECT_EQ(reader.read_paths.count("a"), 1U);
  EXPECT_EQ(report.audit.audited, 51U) << "b and all below it";
}

TEST_F(AuditTest, ADriveThatIsAwayIsNotAudited) {
  make_tree();
  clock.advance(200h);
  reader.drive_errors[drive(1)] = EIO;
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.missed, 0U);
  EXPECT_EQ(report.record.errors, 1U);
  reader.repair();
  clock.advance(200h);
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

TEST_F(AuditTest, ASymbolicLinkInThePathIsNotFollowed) {
  make_tree();
  std::filesystem::rename(on_drive("a"), temp / "outside");
  std::filesystem::create_directory_symlink(temp / "outside", on_drive("a"));
  clock.advance(200h);
  const ScanReport report = scan();
  EXPECT_GT(report.record.figures.missed, 0U);
  expect_exact();
}

TEST_F(AuditTest, TheOldestTotalIsKnown) {
  const auto before = clock.wall_now();
  make_tree();
  EXPECT_GE(scan().audit.oldest_total, before);
  scan_for_a_period();
  scan_for_a_period();
  EXPECT_GE(scan().audit.oldest_total, clock.wall_now() - 103h);
}

TEST_F(AuditTest, TheRoundGoesOnWhereItWasThoughThatDirectoryIsGone) {
  make_tree();
  std::uint64_t round = 0;
  for (int hour = 0; hour < 101; ++hour) {
    clock.advance(1h);
    if (hour == 30) {
      for (int number = 10; number < 30; ++number) {
        remove("a/" + std::to_string(number));
        mark("a/" + std::to_string(number));
      }
    }
    round += scan().audit.audited;
  }
  EXPECT_GE(round, 80U);
  expect_exact();
}

}  // namespace
}  // namespace spoor::scanner
