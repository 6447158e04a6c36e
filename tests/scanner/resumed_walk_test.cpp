// Scans that are ended, and gone on with.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using tracker::MarkKind;

class ResumedWalkTest : public ScannedNode {
 protected:
  explicit ResumedWalkTest(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {
    resumes = true;
  }

  // 1 + 8 + 32 directories, the drive's root among them, and a file in each of the last.
  void make_tree() {
    for (int top = 0; top < 8; ++top) {
      for (const char* below : {"a", "a-b", "a/x", "c"}) make_file(fmt::format("{}/{}/file", top, below));
    }
  }
  static constexpr std::uint64_t all = 41;

  // The directory of that path is the last that is begun.
  void end_at(const std::string& last) {
    reader.read_paths.clear();
    ASSERT_TRUE(stop_at(last));
    EXPECT_TRUE(was_read(last));
  }

  // Those that were open when it was stopped are read again.
  static bool was_open(const std::string& path, const std::string& last) {
    return path.empty() || (last + '/').starts_with(path + '/');
  }

  // Others that were read in the scan before this one, and again in this one.
  static std::vector<std::string> read_again(const std::multiset<std::string>& before,
                                             const std::multiset<std::string>& after,
                                             const std::string& last) {
    std::vector<std::string> both;
    std::ranges::set_intersection(before, after, std::back_inserter(both));
    std::erase_if(both, [&](const std::string& path) { return was_open(path, last); });
    return both;
  }
};

TEST_F(ResumedWalkTest, InterruptedScan_DirectoriesAreNotReadAgain) {
  for (const auto& [threads, unlike_listed] :
       {std::pair(1U, false), std::pair(4U, false), std::pair(1U, true)}) {
    options.threads = threads;
    reader.inodes_unlike_listed = unlike_listed;
    options.full = true;
    clear_drive();
    make_tree();
    end_at("4/a/x");
    options.full = false;
    const auto before = reader.read_paths;
    const ScanReport report = scan_counting_reads();
    EXPECT_TRUE(has_resumed);
    if (threads == 1) {
      EXPECT_EQ(read_again(before, reader.read_paths, "4/a/x"), std::vector<std::string>());
      EXPECT_EQ(report.dirs_replayed, before.size() - 1) << "but for the one that was being read";
    }
    EXPECT_GE(report.dirs_replayed, 4U * 5 + 2);
    EXPECT_EQ(report.record.figures.dirs_walked, report.dirs_replayed + reader.read_paths.size());
    expect_exact();
    EXPECT_EQ(scan_counting_reads().dirs_replayed, 0U);
    EXPECT_FALSE(has_resumed);
  }
}

TEST_F(ResumedWalkTest, SeveralInterruptions_EachDirectoryIsReadOnce) {
  make_tree();
  std::multiset<std::string> read;
  for (const char* last : {"0/a/x", "2", "2/a", "5/c"}) {
    end_at(last);
    std::erase_if(reader.read_paths, [&](const std::string& path) { return was_open(path, last); });
    read.merge(reader.read_paths);
  }
  const ScanReport report = scan_counting_reads();
  read.merge(reader.read_paths);
  EXPECT_EQ(read.size(), all) << "each was read once";
  EXPECT_EQ(report.record.figures.dirs_new, all);
  expect_exact();
}

TEST_F(ResumedWalkTest, DirectoriesRemovedBeforeResume_NextScanIsExact) {
  for (const std::string gone : {"4", "4/a", "4/a/x", "4/c", "5", "1"}) {
    clear_drive();
    make_tree();
    options.full = true;
    scan();
    end_at("4/a/x");
    options.full = false;
    remove(gone);
    mark(gone);
    scan();
    EXPECT_TRUE(has_resumed);
    EXPECT_EQ(scan().record.errors, 0U) << gone;
    expect_exact();
    EXPECT_TRUE(is_complete(""));
  }
}

// Moved back, nobody marks what is below it.
TEST_F(ResumedWalkTest, DirectoryMovedAwayBeforeResume_IsReadThereAndAgainLater) {
  for (const char* path : {"top/p/q/1/1", "top/p/q/2/1", "top/p/q/3/x/1"}) make_file(path);
  scan();
  make_file("top/p/q/3/x/2");
  mark("top", MarkKind::tree);
  end_at("top/p/q/2");
  rename("top/p", "top/aside");
  scan();
  EXPECT_TRUE(has_resumed);
  expect_exact();
  rename("top/aside", "top/p");
  mark("top/p");
  mark("top/aside");
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

TEST_F(ResumedWalkTest, DirectoriesSwappedBeforeResume_NextScanIsExact) {
  for (const bool birth : {true, false}) {
    reader.without_birth = !birth;
    clear_drive();
    make_tree();
    options.full = true;
    scan();
    end_at("4/a/x");
    options.full = false;
    rename("1", "aside");
    rename("5", "1");
    rename("4", "5");
    rename("aside", "4");
    for (const char* path : {"1", "5", "4", "aside"}) mark(path);
    make_file("4/a/x/more");
    mark("4/a/x/more", MarkKind::file);
    scan();
    EXPECT_TRUE(has_resumed);
    EXPECT_EQ(scan().record.errors, 0U);
    expect_exact();
  }
}

TEST_F(ResumedWalkTest, UnreadableDirectories_AreRetriedOnResume) {
  make_tree();
  reader.list_errors["1/a"] = EIO;
  reader.open_errors["2/a-b"] = EACCES;
  reader.file_errors["3/c"] = EIO;
  end_at("4/a/x");
  reader.repair();
  const ScanReport report = scan_counting_reads();
  EXPECT_EQ(report.record.errors, 0U);
  for (const char* path : {"1/a", "1/a/x", "2/a-b", "3/c"}) EXPECT_TRUE(was_read(path)) << path;
  EXPECT_FALSE(was_read("1/a-b"));
  expect_exact();
}

TEST_F(ResumedWalkTest, DriveReplacedBeforeResume_IsReadAgain) {
  for (const bool birth : {true, false}) {
    reader.without_birth = !birth;
    make_tree();
    end_at("4/a/x");
    std::filesystem::rename(drive(), temp / (birth ? "old" : "older"));
    std::filesystem::create_directory(drive());
    make_tree();
    make_file("1/a/more");
    const ScanReport report = scan_counting_reads();
    EXPECT_TRUE(has_resumed);
    EXPECT_EQ(report.record.errors, 0U);
    EXPECT_EQ(reader.read_paths.size(), all);
    expect_exact();
    clear_drive();
    scan();
  }
}

TEST_F(ResumedWalkTest, DriveIdentityChangedBeforeResume_IsReadAgain) {
  give_identity(0, '1');
  make_tree();
  end_at("4/a/x");
  give_identity(0, '2');
  scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_EQ(reader.read_paths.size(), all);
  expect_exact();
}

TEST_F(ResumedWalkTest, InterruptedFullScan_ResumesAsFullScan) {
  make_tree();
  scan();
  make_file("1/a/unmarked");
  make_file("7/a/unmarked");
  options.full = true;
  end_at("4/a/x");
  options.full = false;
  const ScanReport report = scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_TRUE(report.record.walked_everything);
  EXPECT_EQ(report.record.reason, "a full scan was asked for");
  expect_exact();
}

// Who asked for everything then saw the drives as they were then.
TEST_F(ResumedWalkTest, DriveUnmountedBeforeFullScanResume_FailsAndKeepsTotals) {
  make_tree();
  scan();
  options.full = true;
  end_at("4/a/x");
  options.full = false;
  std::filesystem::rename(drive(), temp / "mounted elsewhere");
  std::filesystem::create_directory(drive());
  const ScanReport report = scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_EQ(report.failed_drives.size(), 1U);
  EXPECT_EQ(files(""), 32U);
}

TEST_F(ResumedWalkTest, FullScanRequested_DoesNotResume) {
  make_tree();
  scan();
  options.full = true;
  end_at("4/a/x");
  make_file("1/a/unmarked");
  EXPECT_EQ(scan_counting_reads().dirs_replayed, 0U);
  EXPECT_FALSE(has_resumed);
  EXPECT_EQ(reader.read_paths.size(), all);
  expect_exact();
}

TEST_F(ResumedWalkTest, ClockSetBack_WalkIsStillResumed) {
  make_tree();
  end_at("4/a/x");
  const auto began = clock.wall_now();
  clock.set_wall(began - std::chrono::hours(1000));
  const ScanReport report = scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_EQ(report.record.took(), std::chrono::nanoseconds(0));
  expect_exact();
  make_file("1/a/new");
  mark("1/a/new", MarkKind::file);
  scan();
  expect_exact();
}

class ResumedWalkOfTwoDrivesTest : public ResumedWalkTest {
 protected:
  ResumedWalkOfTwoDrivesTest() : ResumedWalkTest({"one", "two"}) {
    for (int top = 0; top < 4; ++top) {
      write_file(on_drive(fmt::format("a{}/file", top), 0), 1);
      write_file(on_drive(fmt::format("b{}/file", top), 1), 1);
    }
  }
};

TEST_F(ResumedWalkOfTwoDrivesTest, TwoDrives_EachResumesWhereItStopped) {
  for (const std::size_t threads : {1U, 4U}) {
    options.threads = threads;
    options.full = true;
    end_at("b3");
    options.full = false;
    EXPECT_GE(scan_counting_reads().dirs_replayed, threads == 1 ? 6U : 0U);
    // Others may begin the last one before the walk has taken any.
    if (threads == 1) {
      EXPECT_TRUE(has_resumed);
    }
    expect_exact();
  }
}

TEST_F(ResumedWalkOfTwoDrivesTest, DriveUnmountedBeforeResume_KeepsItsTotals) {
  give_identity(1, '1');
  scan();
  mark("b0", MarkKind::tree);
  mark("b3");
  write_file(on_drive("b3/new", 1), 1);
  end_at("b3");
  std::filesystem::rename(drive(1), temp / "unmounted");
  write_file(on_drive("beneath/file", 1), 1000);
  const ScanReport report = scan();
  EXPECT_TRUE(has_resumed);
  ASSERT_EQ(report.failed_drives.size(), 1U);
  EXPECT_EQ(report.record.bytes, 8U);
  EXPECT_FALSE(usage("beneath"));
  std::filesystem::remove_all(drive(1));
  std::filesystem::rename(temp / "unmounted", drive(1));
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

}  // namespace
}  // namespace spoor::scanner
