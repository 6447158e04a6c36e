#include "cli/scan/scan_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tracker/filter/hash.h"

namespace spoor::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ScanReportTest : public testing::Test {
 protected:
  // So many items in the filter of one level.
  void gather(int count, std::size_t level) {
    gathered_.items += count;
    for (int number = 0; number < count; ++number) {
      gathered_.marks.add(tracker::hash_path(std::to_string(number)), levels_.shape(level));
    }
  }

  ScanOutcome outcome() const {
    return {.gathered = gathered_, .levels = levels_, .report = &report_, .start_level = start_level_};
  }
  json filter() const { return scan_json(outcome())["filter"]; }

  const tracker::LevelSchedule levels_{1000, 0.1};
  peer::Gathered gathered_;
  scanner::ScanReport report_;
  std::size_t start_level_ = 0;
};

TEST_F(ScanReportTest, FilterWithinItsBound_IsNotSaturated) {
  gather(500, 0);
  gather(1500, 1);
  EXPECT_FALSE(filter()["saturated"]);
  EXPECT_EQ(filter()["levels"], 2);
  EXPECT_EQ(filter()["bits"], levels_.shape(0).bits + levels_.shape(1).bits);
  EXPECT_NEAR(filter()["items"].get<double>(), 2000, 100);
  EXPECT_EQ(filter()["start_level"], 0);
  const std::string text = scan_text(outcome(), true);
  EXPECT_THAT(text, HasSubstr(" items in 2 levels, density "));
  EXPECT_THAT(text, Not(HasSubstr("saturated")));
  EXPECT_THAT(text, Not(HasSubstr("is asked to open")));
}

// As many as it is made for, on each of several nodes: together above the bound of one.
TEST_F(ScanReportTest, NodesWithinTheirBound_AreNotSaturated) {
  const auto add = [&](int node, int count) {
    tracker::MarkSet marks;
    for (int number = 0; number < count; ++number) {
      marks.add(tracker::hash_path(std::to_string(node) + "/" + std::to_string(number)), levels_.shape(0));
    }
    ASSERT_TRUE(gathered_.marks.try_add_apart(marks));
  };
  for (int node = 0; node < 5; ++node) add(node, 1000);
  EXPECT_GT(filter()["fp_rate"].get<double>(), levels_.fp_rate_max());
  EXPECT_FALSE(filter()["saturated"]);
  add(5, 3000);
  EXPECT_TRUE(filter()["saturated"]);
}

TEST_F(ScanReportTest, Note_IsShown) {
  auto with_note = outcome();
  EXPECT_TRUE(scan_json(with_note)["note"].is_null());
  EXPECT_THAT(scan_text(with_note, true), Not(HasSubstr("note")));
  with_note.note = "members.json: the disk is full";
  EXPECT_EQ(scan_json(with_note)["note"], "members.json: the disk is full");
  EXPECT_THAT(scan_text(with_note, true), HasSubstr("note       members.json: the disk is full\n"));
}

TEST_F(ScanReportTest, MountPoints_AreNamedUpToABound) {
  EXPECT_EQ(scan_json(outcome())["mounts"], json::array());
  EXPECT_THAT(scan_text(outcome(), true), Not(HasSubstr("not entered")));
  for (int number = 0; number < 10; ++number) report_.mounts.push_back("/mnt/" + std::to_string(number));
  report_.mount_count = 10;
  EXPECT_EQ(scan_json(outcome())["mounts"], json(report_.mounts));
  EXPECT_THAT(scan_text(outcome(), true), HasSubstr("  not entered: /mnt/9: another mount\n"));
  EXPECT_THAT(scan_text(outcome(), true), Not(HasSubstr(" more\n")));
  report_.mounts.emplace_back("/mnt/further");
  report_.mount_count = 2000;
  EXPECT_THAT(scan_text(outcome(), true), HasSubstr("  not entered: 1,990 more\n"));
  EXPECT_THAT(scan_text(outcome(), true), Not(HasSubstr("further")));
}

TEST_F(ScanReportTest, TextFromPeers_IsEscapedAndExactInJson) {
  const std::string evil = "evil\n2026-01-01T00:00:00.000Z error \x1b[2J";
  gathered_.peers = {{evil, evil, false, evil}};
  gathered_.gaps = {evil};
  report_.record.walked_everything = true;
  report_.record.reason = evil;
  report_.errors = {{evil, evil}};
  report_.mounts = {evil};
  report_.mount_count = 1;
  report_.record.errors = 1;
  auto evil_outcome = outcome();
  evil_outcome.note = evil;
  for (const bool is_dry : {false, true}) {
    if (is_dry) evil_outcome.report = nullptr;
    const std::string text = scan_text(evil_outcome, true);
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << text;
    EXPECT_THAT(text, Not(HasSubstr("\n2026")));
    EXPECT_THAT(text, HasSubstr("evil\\x0a2026"));
  }
  EXPECT_EQ(scan_json(outcome())["peers"][0]["error"], evil);
}

TEST_F(ScanReportTest, FilterBeyondItsBound_IsSaturatedWithAdvice) {
  gather(2'000, 0);
  EXPECT_TRUE(filter()["saturated"]);
  EXPECT_GT(filter()["fp_rate"], 0.2);
  const std::string text = scan_text(outcome(), true);
  EXPECT_THAT(text, HasSubstr(" items in 1 level, density "));
  EXPECT_THAT(text, HasSubstr("saturated"));
  EXPECT_THAT(text, HasSubstr("raise tracker.memory_limit"));
  EXPECT_THAT(scan_text(outcome(), false), HasSubstr("raise tracker.memory_limit"));
}

TEST_F(ScanReportTest, ScanWithoutProblems_HasFourLines) {
  gathered_.peers = {{"n1", "http://10.0.0.1:7420", true, ""}};
  report_.record.id = 7;
  report_.record.files = 1;
  report_.record.figures.audited = 5;
  report_.duration = std::chrono::milliseconds(12);
  EXPECT_EQ(scan_text(outcome(), false),
            "scan 7     incremental\n"
            "walked     0 of 0 directories (0.00 %): 0 changed, 0 new, 0 deleted\n"
            "now        1 file, 0 B\n"
            "took       12 ms; 1 of 1 node responded\n");
  EXPECT_THAT(scan_text(outcome(), true),
              HasSubstr("audit      5 directories read without a mark: 0 changed\n"));
  gathered_.peers.push_back({"n2", "http://10.0.0.2:7420", false, "it is down"});
  report_.record.figures.missed = 1;
  report_.audit.missed_paths = {"a"};
  EXPECT_THAT(scan_text(outcome(), false),
              HasSubstr("1 of 2 nodes responded\n  changed without a mark: a\n"));
  EXPECT_THAT(scan_text(outcome(), false), HasSubstr("  left for next time: n2: it is down\n"));
}

TEST_F(ScanReportTest, StartLevel_IsShownIfSet) {
  start_level_ = 3;
  EXPECT_EQ(filter()["start_level"], 3);
  EXPECT_THAT(scan_text(outcome(), true), HasSubstr("the next cycle is asked to open at level 3\n"));
}

// What an older version, or another configuration, asked for may be a level this schedule does not have.
TEST_F(ScanReportTest, StartLevelBeyondSchedule_IsShown) {
  start_level_ = tracker::LevelSchedule::level_max;
  EXPECT_THAT(scan_text(outcome(), true), HasSubstr("at level 63\n"));
}

scanner::ScanRecord incremental() {
  scanner::ScanRecord scan;
  scan.id = 12;
  scan.finished_at = base::WallTime(std::chrono::seconds(3));
  scan.figures = {.dirs_walked = 1000,
                  .dirs_skipped = 2000,
                  .dirs_changed = 600,
                  .dirs_new = 300,
                  .dirs_deleted = 4,
                  .audited = 9,
                  .missed = 7};
  scan.files = 5;
  scan.bytes = 2048;
  scan.errors = 6;
  return scan;
}

TEST(ScansTextTest, EachScan_HasOneLine) {
  scanner::ScanRecord full = incremental();
  full.id = 1;
  full.walked_everything = true;
  full.reason = "it is the first scan";
  EXPECT_EQ(scans_text({incremental(), full}),
            "scan  started                took  mode         walked  skipped  changed  new  deleted  errors  "
            "missed  false positives  files     size  remarks\n"
            "12    1970-01-01T00:00:00Z  3.0 s  incremental   1,000    2,000      600  300        4       6  "
            "     7    100 (10.00 %)      5  2.0 KiB\n"
            "1     1970-01-01T00:00:00Z  3.0 s  full          1,000    2,000      600  300        4       6  "
            "     7                -      5  2.0 KiB  it is the first scan\n");
}

TEST(ScansTextTest, PartialScan_IsShownBesideItsReason) {
  scanner::ScanRecord scan = incremental();
  scan.partial = true;
  EXPECT_THAT(scans_text({scan}), HasSubstr("  partial\n"));
  scan.walked_everything = true;
  scan.reason = "n2\x1b was never read before";
  EXPECT_THAT(scans_text({scan}), HasSubstr("  partial; n2\\x1b was never read before\n"));
}

TEST(ScansTextTest, NoScans_PrintsNoScanIsKnown) { EXPECT_EQ(scans_text({}), "no scan is known\n"); }

}  // namespace
}  // namespace spoor::cli
