// Changes that nobody marked: found within a period, counted and named, and the totals mended.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "scanner/store/directory_store.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/sanitizer.h"
#include "tracker/filter/hash.h"

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

  // By another directory with other files.
  void replace(const std::string& path) {
    remove(path);
    make_file(path + "/more", 1000);
  }

  std::uint64_t audited = 0;
  std::uint64_t audited_most = 0;
};

TEST_F(AuditTest, AuditPeriod_ReadsEveryDirectoryOnceInEvenShares) {
  make_tree();
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 104U) << "two roots, a and b, and fifty in each";
  EXPECT_LE(audited_most, 3U);
}

TEST_F(AuditTest, AuditDisabled_ReadsNothing) {
  options.audit_period = 0h;
  make_tree();
  make_file("a/7/unmarked");
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 0U);
  EXPECT_FALSE(scan().audit.oldest_total);
}

TEST_F(AuditTest, UnmarkedChanges_AreReportedAsMissedAndTotalsCorrected) {
  make_tree();
  make_file("a/7/unmarked", 1000);
  write_file(on_drive("b/9/file", 1), 5000);
  make_file("a/new/deep/file");
  remove("a/3/file");
  EXPECT_THAT(scan_for_a_period(), UnorderedElementsAre("a/7", "b/9", "a", "a/3"));
  expect_exact();
}

TEST_F(AuditTest, UnmarkedDirectoryReplacement_IsFound) {
  make_tree();
  make_file("b/other/file", 77);
  std::filesystem::rename(on_drive("b/5", 1), temp / "aside");
  std::filesystem::create_directories(on_drive("b", 1));
  std::filesystem::rename(on_drive("b/other", 0), on_drive("b/5", 1));
  EXPECT_FALSE(scan_for_a_period().empty());
  expect_exact();
}

// ext4 gives the inode number that has just become free to the next directory.
TEST_F(AuditTest, UnmarkedReplacementWithReusedInodes_IsMissedOnceAtParent) {
  reader.reuses_inodes = true;
  make_tree();
  for (const std::string path : {"a/5", "a/6"}) replace(path);
  clock.advance(200h);
  EXPECT_THAT(scan().audit.missed_paths, ElementsAre("a"));
  expect_exact();
}

TEST_F(AuditTest, ReplacementWithReusedInodeBelowMarkedParent_IsCorrected) {
  reader.reuses_inodes = true;
  make_tree();
  replace("a/5");
  for (int hour = 0; hour < 100; ++hour) {
    clock.advance(1h);
    mark("a/7");
    static_cast<void>(scan());
  }
  expect_exact();
}

TEST_F(AuditTest, InodesUnlikeListed_NothingIsMissed) {
  reader.inodes_unlike_listed = true;
  make_tree();
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
  EXPECT_EQ(audited, 104U);
}

// Nobody scanned for a long time: marks come first all the same.
TEST_F(AuditTest, OneScan_AuditsForAtMostTenMinutes) {
  make_tree();
  clock.advance(options.audit_period);
  reader.before_read = [&](std::string_view) { clock.advance(30s); };
  EXPECT_EQ(scan().audit.audited, 20U);
  EXPECT_EQ(scan().audit.audited, 20U);
  EXPECT_THAT(scan_for_a_period(), IsEmpty());
}

// Its share is left to the next scan: nothing of the round is lost, nor read twice.
TEST_F(AuditTest, ScanKilledDuringAudit_ResumesWithoutAuditing) {
  resumes = true;
  make_tree();
  clock.advance(50h);
  std::uint64_t all = scan().audit.audited;
  EXPECT_EQ(all, 52U);
  make_file("a/3/marked", 10);
  mark("a/3/marked");
  clock.advance(10h);
  int reads = 0;
  ASSERT_FALSE(scan_stopped_when([&](std::string_view) {
    clock.advance(1s);
    return ++reads == 4;
  }));
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

TEST_F(AuditTest, RecentChange_IsReadButNotCountedAsMissed) {
  make_tree();
  clock.set_wall(base::SystemClock().wall_now());
  options.audit_period = 1ns;
  static_cast<void>(scan());
  make_file("a/7/file", 333);
  // A mark of it comes with the next scan.
  EXPECT_EQ(scan_counting_reads().record.figures.missed, 0U);
  EXPECT_TRUE(was_read("a/7"));
  expect_exact();
}

// Its mark would have come long ago: the clock ran ahead, and was set back since.
TEST_F(AuditTest, UnmarkedChangeAheadOfClock_IsMissed) {
  clock.set_wall(base::SystemClock().wall_now() - 1000h);
  make_tree();
  make_file("a/7/file", 333);
  clock.advance(200h);
  EXPECT_THAT(scan().audit.missed_paths, ElementsAre("a/7"));
  expect_exact();
}

TEST_F(AuditTest, MarkedDirectories_AreNotReadTwice) {
  make_tree();
  clock.advance(200h);
  for (int number = 0; number < 50; ++number) mark("a/" + std::to_string(number) + "/file");
  const ScanReport report = scan_counting_reads();
  EXPECT_EQ(reader.read_paths.count("a/7"), 1U);
  EXPECT_EQ(reader.read_paths.count("a"), 1U);
  EXPECT_EQ(report.audit.audited, 51U) << "b and all below it";
}

TEST_F(AuditTest, DriveCannotBeOpened_IsReportedAndOldestTotalStays) {
  make_tree();
  const auto oldest = scan().audit.oldest_total;
  reader.drive_open_errors[options.drives[0].path] = EACCES;
  std::size_t failed = 0;
  for (int hour = 0; hour < 5; ++hour) {
    clock.advance(1h);
    const ScanReport report = scan();
    failed += report.failed_drives.size();
    EXPECT_EQ(report.audit.oldest_total, oldest);
  }
  EXPECT_GE(failed, 4U);
  EXPECT_EQ(scan_everything().audit.oldest_total, oldest) << "a full scan does not begin a round of it";
}

TEST_F(AuditTest, SymbolicLinkInPath_IsNotFollowed) {
  make_tree();
  std::filesystem::rename(on_drive("a"), temp / "outside");
  std::filesystem::create_directory_symlink(temp / "outside", on_drive("a"));
  clock.advance(200h);
  const ScanReport report = scan();
  EXPECT_GT(report.record.figures.missed, 0U);
  expect_exact();
}

TEST_F(AuditTest, OldestTotal_IsReportedAndBoundedByPeriod) {
  const auto before = clock.wall_now();
  make_tree();
  EXPECT_GE(scan().audit.oldest_total, before);
  scan_for_a_period();
  scan_for_a_period();
  EXPECT_GE(scan().audit.oldest_total, clock.wall_now() - 103h);
}

TEST_F(AuditTest, DirectoryAtAuditPositionRemoved_RoundContinues) {
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

// Changes that are marked as docs/cli.md asks for. Whatever of them the audit comes to, the marks cover it.
class MarkedChangesTest : public AuditTest {
 protected:
  MarkedChangesTest() { make_deep_tree(); }

  void make_deep_tree() {
    for (const char* const top : {"p/one", "p/two", "p/three"}) {
      for (const char* const below : {"x/y/z", "x/w", "v"}) {
        make_file(std::string(top) + "/" + below + "/file");
        make_file(std::string(top) + "/" + below + "/of-" + std::string(top).substr(2));
      }
    }
    make_tree();
  }

  void expect_nothing_missed() {
    clock.advance(200h);
    const ScanReport report = scan();
    EXPECT_THAT(report.audit.missed_paths, IsEmpty());
    EXPECT_EQ(report.audit.missed, 0U);
    EXPECT_GE(report.audit.audited, 100U);
    expect_exact();
  }
};

TEST_F(MarkedChangesTest, MarkedTree_IsNotMissed) {
  using tracker::MarkKind;
  const std::vector<std::pair<const char*, std::function<void()>>> cases{
      {"removed",
       [&] {
         remove("p/one");
         mark("p/one");
       }},
      {"removed, and marked as a file",
       [&] {
         remove("p/one");
         mark("p/one", MarkKind::file);
       }},
      {"renamed",
       [&] {
         rename("p/one", "p/four");
         mark("p/one");
         mark("p/four");
       }},
      {"replaced by another tree",
       [&] {
         remove("p/one");
         rename("p/two", "p/one");
         mark("p/one");
         mark("p/two");
       }},
      {"replaced by a file",
       [&] {
         remove("p/one");
         make_file("p/one");
         mark("p/one");
       }},
      {"swapped, without times of creation", [&] {
         reader.without_birth = true;
         mark("", MarkKind::tree);
         static_cast<void>(scan());
         rename("p/one", "p/aside");
         rename("p/two", "p/one");
         rename("p/aside", "p/two");
         for (const char* path : {"p/one", "p/two", "p/aside"}) mark(path);
       }}};
  for (const auto& [name, change] : cases) {
    SCOPED_TRACE(name);
    remove("p");
    mark("p", MarkKind::tree);
    make_deep_tree();
    clock.advance(200h);
    while (scan().audit.audited > 0) clock.advance(200h);  // until a round begins
    change();
    expect_nothing_missed();
  }
}

TEST_F(AuditTest, UnmarkedRemovedTree_IsMissedOnceAtParent) {
  make_file("a/20/x/y/file");
  make_file("a/20/z/file");
  make_tree();
  remove("a/20");
  remove("a/21");
  clock.advance(200h);
  EXPECT_THAT(scan().audit.missed_paths, ElementsAre("a"));
  expect_exact();
}

// In another round than the directory above it.
TEST_F(AuditTest, UnmarkedRemovedTreeBelowAuditedParent_IsMissedOnce) {
  make_file("a/20/x/y/file");
  make_tree();
  clock.advance(10h);
  static_cast<void>(scan_counting_reads());
  ASSERT_TRUE(was_read("a"));
  ASSERT_FALSE(was_read("a/20"));
  remove("a/20");
  remove("a/21");
  clock.advance(100h);
  EXPECT_THAT(scan().audit.missed_paths, ElementsAre("a"));
  expect_exact();
}

// What is ignored has no mark. It changes the times of the directory alone.
TEST_F(AuditTest, ExcludedNames_AreNotMissed) {
  options.rules = tracker::NamespaceRules({{"*.tmp"}, false});
  make_tree();
  make_file("a/7/upload.tmp");
  make_file("a/8/upload.tmp");
  remove("a/8/upload.tmp");
  clock.advance(200h);
  const ScanReport report = scan_counting_reads();
  EXPECT_THAT(report.audit.missed_paths, IsEmpty());
  EXPECT_EQ(reader.read_paths.count("a/7"), 2U) << "the walk reads it again, for its times";
  EXPECT_EQ(usage("a/7")->total.files, 1U);
}

TEST_F(AuditTest, UnmarkedChangesBesideExcludedNames_AreMissed) {
  options.rules = tracker::NamespaceRules({{"*.tmp"}, false});
  make_tree();
  make_file("a/7/upload.tmp");
  rename("a/7/upload.tmp", "a/7/new");
  make_file("a/8/file");  // of the same size
  rename("a/9/file", "a/9/other");
  remove("a/10/file");
  clock.advance(200h);
  EXPECT_THAT(scan().audit.missed_paths, UnorderedElementsAre("a/7", "a/8", "a/9", "a/10"));
  EXPECT_EQ(usage("a/7")->total.files, 2U);
}

// The peer may hold their marks.
TEST_F(AuditTest, PartialScan_CountsNothingAsMissed) {
  make_tree();
  make_file("a/7/file", 77);
  remove("a/8");
  partial = true;
  clock.advance(200h);
  const ScanReport report = scan();
  EXPECT_EQ(report.audit.missed, 0U);
  EXPECT_THAT(report.audit.missed_paths, IsEmpty());
  expect_exact();
}

// No walk comes there: a filter is asked only of what lies below a directory that is walked.
TEST_F(AuditTest, FilterFalsePositiveBelowUnmarkedParent_IsAudited) {
  make_tree();
  make_file("a/7/file", 77);
  adjust_input = [](ScanInput& input) {
    const auto shape = tracker::BloomShape::for_items(1000, 1e-6);
    const tracker::PrefixHashes found("a/7");
    const tracker::PrefixHashes marked("b/7");
    input.marks.add(found.all().back(), shape);
    for (const tracker::PathHash& hash : marked.all()) input.marks.add(hash, shape);
  };
  clock.advance(200h);
  EXPECT_THAT(scan().audit.missed_paths, ElementsAre("a/7"));
  expect_exact();
}

TEST_F(AuditTest, ReorderedDrives_AreAllAuditedInRound) {
  make_tree();
  reader.read_paths.clear();
  for (int hour = 0; hour < 101; ++hour) {
    clock.advance(1h);
    if (hour == 30 || hour == 80) std::swap(options.drives[0], options.drives[1]);
    const ScanReport report = scan();
    EXPECT_GE(*report.audit.oldest_total, clock.wall_now() - 102h);
  }
  for (int number = 0; number < 50; ++number) {
    EXPECT_TRUE(was_read("a/" + std::to_string(number))) << number;
    EXPECT_TRUE(was_read("b/" + std::to_string(number))) << number;
  }
}

TEST_F(AuditTest, DriveRemovedAndAddedAgain_BeginsNewRound) {
  make_tree();
  clock.advance(50h);
  static_cast<void>(scan());
  const Drive second = options.drives[1];
  options.drives.pop_back();
  static_cast<void>(scan());
  options.drives.push_back(second);
  static_cast<void>(scan());
  clock.advance(10h);
  const std::uint64_t audited_then = scan().audit.audited;
  EXPECT_GE(audited_then, 5U);
  EXPECT_LE(audited_then, 12U) << "a tenth of each";
  expect_exact();
}

// A clock that was wrong by a year in either direction costs no more than the period.
TEST_F(AuditTest, WrongClock_CostsAtMostOnePeriod) {
  make_tree();
  const auto scan_for = [&](std::chrono::hours time) {
    for (const auto end = clock.steady_now() + time; clock.steady_now() < end;) {
      clock.advance(5h);
      EXPECT_LE(*scan().audit.oldest_total, clock.wall_now());
    }
  };
  for (const auto ahead : {8760h, -8760h}) {
    scan_for(30h);
    clock.set_wall(clock.wall_now() + ahead);
    scan_for(130h);
    clock.set_wall(clock.wall_now() - ahead);
    reader.read_paths.clear();
    scan_for(105h);
    for (int number = 0; number < 50; ++number) {
      EXPECT_TRUE(was_read("a/" + std::to_string(number))) << number;
      EXPECT_TRUE(was_read("b/" + std::to_string(number))) << number;
    }
  }
}

TEST_F(AuditTest, FullScanWithClockAhead_OldestTotalIsNotInFuture) {
  const auto now = clock.wall_now();
  clock.set_wall(now + 8760h);
  make_tree();
  clock.set_wall(now);
  EXPECT_LE(*scan().audit.oldest_total, clock.wall_now());
  clock.advance(10h);
  EXPECT_GE(scan().audit.audited, 9U);
}

// Marks of such paths can't be.
TEST(AuditOfAChainTest, UnmarkedChangeBelowTooLongPath_IsMissedAndCorrected) {
  struct Node : ScannedNode {
    void TestBody() override {}
  } node;
  const std::string name(200, 'd');
  DeepTree tree(node.drive());
  for (std::size_t bytes = 0; bytes < 2 * tracker::path_bytes_max; bytes += name.size() + 1)
    tree.descend({name});
  node.options.audit_period = 100h;
  static_cast<void>(node.scan());
  tree.make_file("file");
  node.clock.set_wall(base::SystemClock().wall_now() + 200h);
  node.clock.advance(200h);
  const ScanReport report = node.scan();
  EXPECT_EQ(report.audit.missed, 1U);
  EXPECT_EQ(report.record.files, 1U);
  tree.remove();
}

// Names are looked up once for each level, and not once for each level above it.
TEST(AuditOfAChainTest, DeepTree_NameLookupsAreLinearInDepth) {
  constexpr std::uint64_t levels = support::is_sanitized ? 1000 : 3000;
  struct Node : ScannedNode {
    void TestBody() override {}
  } node;
  DeepTree tree(node.drive());
  for (std::uint64_t level = 0; level < levels; ++level) tree.descend({"e", "d"});
  node.options.audit_period = 100h;
  static_cast<void>(node.scan());
  for (const auto passed : {50h, 51h}) {
    node.clock.advance(passed);
    node.reader.names_opened = 0;
    const ScanReport report = node.scan();
    EXPECT_NEAR(static_cast<double>(report.audit.audited), levels, 100);
    EXPECT_EQ(report.audit.missed, 0U);
    EXPECT_LE(node.reader.names_opened, 8 * levels);
  }
  tree.remove();
}

}  // namespace
}  // namespace spoor::scanner
