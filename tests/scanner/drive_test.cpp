// Drives that are missing, back, empty, added and removed.

#include <gtest/gtest.h>

#include <cerrno>
#include <fstream>
#include <iterator>
#include <utility>

#include "tests/scanner/scanned_node.h"
#include "tracker/storage/drive_registry.h"

namespace spoor::scanner {
namespace {

class DriveTest : public ScannedNode {
 protected:
  DriveTest() : ScannedNode({"one", "two"}) {
    write_file(on_drive("a/b/1", 0), 10);
    write_file(on_drive("a/b/1", 1), 20);
    write_file(on_drive("a/c/1", 1), 30);
    // Made before any scan, so that the times of the roots stay.
    for (const std::size_t number : {0U, 1U}) std::filesystem::create_directory(on_drive(".spoor", number));
  }

  // As if the file system were not mounted: the mount point is there, or not even that.
  void unmount(std::size_t number, bool leave_mount_point) {
    std::filesystem::rename(drive(number), temp / "unmounted");
    if (leave_mount_point) std::filesystem::create_directory(drive(number));
  }
  void mount(std::size_t number) {
    std::filesystem::remove_all(drive(number));
    std::filesystem::rename(temp / "unmounted", drive(number));
  }

  // The same, and what lies beneath has files of its own.
  void unmount_from_a_full_directory(std::size_t number) {
    unmount(number, true);
    write_file(on_drive("beneath/1", number), 1000);
  }

  static std::string failure(const ScanReport& report) {
    return report.failed_drives.empty() ? "" : report.failed_drives[0].message;
  }

  void expect_failed(const ScanReport& report, std::size_t number) {
    ASSERT_EQ(report.failed_drives.size(), 1U);
    EXPECT_EQ(report.failed_drives[0].path, drive(number));
    EXPECT_FALSE(report.failed_drives[0].message.empty());
    EXPECT_EQ(report.record.errors, 1U);
    EXPECT_EQ(report.record.figures.dirs_deleted, 0U);
  }
};

TEST_F(DriveTest, SamePathOnTwoDrives_IsSummed) {
  const ScanReport report = scan();
  EXPECT_EQ(report.record.files, 3U);
  EXPECT_EQ(report.record.bytes, 60U);
  EXPECT_EQ(usage("a/b")->total.bytes, 30U);
  expect_exact();
}

class StampedDriveTest : public DriveTest {
 protected:
  StampedDriveTest() {
    stamp_drive = [this](const std::filesystem::path& drive, const std::string& stamp,
                         const std::string& before) {
      if (takes_stamps_) write(drive, tracker::format_drive_stamp({stamp, before}));
      return takes_stamps_;
    };
  }

  static void write(const std::filesystem::path& drive, const std::string& content) {
    std::ofstream(drive / tracker::drive_stamp_file) << content;
  }
  std::string stamps(std::size_t number) {
    std::ifstream file(on_drive(tracker::drive_stamp_file, number));
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // The other drive alone is not walked.
  void expect_rolled_back(std::size_t number) {
    const ScanReport report = scan();
    ASSERT_EQ(report.drive_gaps.size(), 1U);
    EXPECT_EQ(report.drive_gaps[0].path, drive(number));
    expect_exact();
    EXPECT_TRUE(scan().drive_gaps.empty());
  }

  bool takes_stamps_ = true;
};

TEST_F(StampedDriveTest, DriveWithAnOlderStamp_IsWalked) {
  scan();
  const std::string old = stamps(1);
  write_file(on_drive("a/b/2", 1), 5);
  mark("a/b");
  EXPECT_TRUE(scan().drive_gaps.empty());
  std::filesystem::remove_all(on_drive("a/b/2", 1));
  write(drive(1), old);
  expect_rolled_back(1);
}

TEST_F(StampedDriveTest, DriveWithoutAStamp_IsWalked) {
  scan();
  write_file(on_drive("a/c/2", 1), 5);
  std::filesystem::remove_all(on_drive(tracker::drive_stamp_file, 1));
  expect_rolled_back(1);
  write_file(on_drive("a/c/3", 1), 5);
  write(drive(1), "");
  expect_rolled_back(1);
}

// A failed look is no proof that the stamp is there.
TEST_F(StampedDriveTest, DriveThatCannotBeLookedAtForAMoment_IsWalked) {
  scan();
  const std::string old = stamps(1);
  write_file(on_drive("a/b/2", 1), 5);
  mark("a/b");
  scan();
  std::filesystem::remove_all(on_drive("a/b/2", 1));
  write(drive(1), old);
  reader.looks_to_fail = 2;  // one for each drive
  scan();
  EXPECT_EQ(reader.looks_to_fail, 0);
  expect_exact();
}

// A scan that was killed after it gave its stamp, and before it was committed.
TEST_F(StampedDriveTest, StampThatWasNotCommitted_IsNoRollback) {
  scan();
  const std::string committed = stamps(1).substr(0, 32);
  write(drive(1), tracker::format_drive_stamp({std::string(32, 'a'), committed}));
  EXPECT_TRUE(scan().drive_gaps.empty());
  EXPECT_EQ(stamps(1).substr(33, 32), committed);
}

TEST_F(StampedDriveTest, DriveThatTakesNoStamp_KeepsTheLast) {
  scan();
  takes_stamps_ = false;
  EXPECT_TRUE(scan().drive_gaps.empty());
  EXPECT_TRUE(scan().drive_gaps.empty());
}

TEST_F(StampedDriveTest, DriveThatFails_KeepsTheLast) {
  scan();
  const std::string last = stamps(1);
  reader.drive_errors[drive(1)] = EIO;
  expect_failed(scan(), 1);
  EXPECT_EQ(stamps(1), last);
}

// It says nothing of what is on another disk.
TEST_F(StampedDriveTest, AnotherDrive_IsNotARollback) {
  give_identity(1, '1');
  scan();
  give_identity(1, '2');
  std::filesystem::remove_all(on_drive(tracker::drive_stamp_file, 1));
  EXPECT_TRUE(scan().drive_gaps.empty());
  expect_exact();
}

TEST_F(DriveTest, MissingDrive_KeepsItsTotalsAndIsWalkedInFullOnceItReturns) {
  scan();
  write_file(on_drive("a/b/2", 1), 10);
  unmount(1, false);
  write_file(on_drive("a/b/2", 0), 10);
  mark("a/b");
  const ScanReport report = scan();  // the mark is used up here
  expect_failed(report, 1);
  EXPECT_EQ(report.record.bytes, 70U);
  EXPECT_EQ(usage("a/c")->total.bytes, 30U);
  EXPECT_FALSE(is_complete("a/b"));
  scan();
  mount(1);
  scan();
  EXPECT_TRUE(is_complete(""));
  expect_exact();
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(DriveTest, Gap_WalksAllOfTheDriveOnce) {
  scan();
  write_file(on_drive("a/b/2", 1), 10);  // without a mark
  options.drives[1].gap = "gap 1";
  options.drives[1].gap_reason = "events were lost";
  const ScanReport report = scan_counting_reads();
  EXPECT_FALSE(report.record.walked_everything);
  ASSERT_EQ(report.drive_gaps.size(), 1U);
  EXPECT_EQ(report.drive_gaps[0].path, drive(1));
  EXPECT_EQ(report.drive_gaps[0].message, "events were lost");
  EXPECT_EQ(report.record.figures.dirs_walked, 4U) << "none of the other drive";
  EXPECT_EQ(report.record.errors, 0U);
  expect_exact();
  EXPECT_TRUE(scan_counting_reads().drive_gaps.empty());
  EXPECT_TRUE(reader.read_paths.empty());
  options.drives[1].gap = "gap 2";
  EXPECT_EQ(scan().drive_gaps.size(), 1U);
}

TEST_F(DriveTest, GapOfDriveThatIsMissingOrRefused_IsWalkedLater) {
  scan();
  for (const bool is_missing : {true, false}) {
    write_file(on_drive("a/b/2", 1), is_missing ? 10 : 20);  // without a mark
    options.drives[1].gap = is_missing ? "gap 1" : "gap 2";
    if (is_missing) unmount(1, false);
    if (!is_missing) options.drives[1].refused = "it is another one";
    const ScanReport report = scan();
    EXPECT_EQ(report.failed_drives.size(), 1U);
    EXPECT_TRUE(is_missing || report.drive_gaps.empty()) << "it is not walked";
    if (is_missing) mount(1);
    options.drives[1].refused.clear();
    scan();
    expect_exact();
  }
}

TEST_F(DriveTest, GapDuringAScan_IsLeftToTheNextOne) {
  scan();
  options.drives[1].gap = "gap 1";
  options.progress_every = 1;
  progress = [&](const Progress&) { options.drives[1].gap = "gap 2"; };
  scan();
  progress = {};
  EXPECT_EQ(scan().drive_gaps.size(), 1U);
}

TEST_F(DriveTest, EmptyMountPoint_FailsTheDriveAndKeepsTotals) {
  scan();
  write_file(on_drive("a/b/2", 1), 10);
  mark("a/b");
  unmount(1, true);
  const ScanReport report = scan();
  expect_failed(report, 1);
  EXPECT_NE(report.failed_drives[0].message.find("spoor scan --full"), std::string::npos);
  EXPECT_EQ(report.record.bytes, 60U);
  write_file(on_drive(".spoor/.tracker.bin", 1), 10);
  expect_failed(scan(), 1);
  mount(1);
  scan();
  expect_exact();
}

// Not a request of somebody who has looked: such a scan comes with every loss of a tracker's memory.
TEST_F(DriveTest, FullWalkAfterGap_DoesNotAcceptEmptyMountPoint) {
  scan();
  unmount(1, true);
  mark("x", tracker::MarkKind::tree);
  tracker::Tracker::Options tracker_options;
  tracker_options.levels = tracker::LevelSchedule(100, 0.01);
  tracker = std::make_unique<tracker::Tracker>(tracker_options, clock,
                                               tracker::Tracker::born(tracker::InstanceId::random(), clock));
  const ScanReport report = scan();
  EXPECT_TRUE(report.record.walked_everything);
  expect_failed(report, 1);
}

TEST_F(DriveTest, RequestedFullScan_AcceptsEmptyMountPoint) {
  scan();
  unmount(1, true);
  expect_failed(scan(), 1);
  const ScanReport report = scan_everything();
  EXPECT_TRUE(report.failed_drives.empty());
  EXPECT_EQ(report.record.figures.dirs_deleted, 4U);
  EXPECT_TRUE(is_complete(""));
  expect_exact();
}

TEST_F(DriveTest, RequestedFullScan_KeepsTotalsOfMissingDrive) {
  scan();
  unmount(1, false);
  const ScanReport report = scan_everything();
  expect_failed(report, 1);
  EXPECT_EQ(report.record.bytes, 60U);
}

TEST_F(DriveTest, EmptiedDrive_IsAcceptedAsEmpty) {
  scan();
  std::filesystem::remove_all(on_drive("a", 1));
  mark("a", tracker::MarkKind::tree);
  const ScanReport report = scan();
  EXPECT_TRUE(report.failed_drives.empty());
  expect_exact();
}

TEST_F(DriveTest, OtherFileSystemWithContent_IsWalkedAsNewDrive) {
  scan();
  unmount(1, true);
  write_file(on_drive("n/1", 1), 5);
  const ScanReport report = scan();
  EXPECT_TRUE(report.failed_drives.empty());
  EXPECT_EQ(report.record.figures.dirs_deleted, 4U);
  expect_exact();
}

TEST_F(DriveTest, RefusedDrive_IsNotWalked) {
  scan();
  write_file(on_drive("a/b/2", 1), 10);
  mark("a/b");
  options.drives[1].refused = "it is not the drive that was here";
  const ScanReport report = scan_counting_reads();
  expect_failed(report, 1);
  EXPECT_EQ(report.errors[0].message, "it is not the drive that was here");
  EXPECT_EQ(reader.read_paths.count("a/b"), 1U);
  options.drives[1].refused.clear();
  scan();
  expect_exact();
}

// A copy of the old drive, down to the inodes as far as anybody can tell: only its identity differs.
TEST_F(DriveTest, DriveIdentityChanged_IsWalkedInFull) {
  give_identity(1, '1');
  scan();
  write_file(on_drive("a/c/2", 1), 7);  // nobody marks it
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
  give_identity(1, '2');
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_deleted, 4U);
  EXPECT_EQ(report.record.figures.dirs_new, 4U);
  expect_exact();
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty()) << "once";
}

// After the identities of the drives were looked up, and before they are walked.
TEST_F(DriveTest, UnmountedDuringGather_KeepsTotalsAndIsWalkedInFullLater) {
  give_identity(1, '1');
  scan();
  write_file(on_drive("a/c/2", 1), 7);
  mark("a/c");
  unmount_from_a_full_directory(1);
  const ScanReport report = scan();
  expect_failed(report, 1);
  EXPECT_NE(failure(report).find("carries no identity"), std::string::npos);
  EXPECT_EQ(report.record.bytes, 60U);
  EXPECT_FALSE(usage("beneath"));
  EXPECT_FALSE(is_complete("a/c"));
  mount(1);
  EXPECT_TRUE(scan().failed_drives.empty());
  expect_exact();
}

TEST_F(DriveTest, OtherDriveMountedDuringGather_IsNotWalked) {
  give_identity(1, '1');
  scan();
  unmount_from_a_full_directory(1);
  give_identity(1, '2');
  options.drives[1].identity = std::string(32, '1');
  mark("a/c");
  const ScanReport report = scan();
  expect_failed(report, 1);
  EXPECT_NE(failure(report).find("another drive's identity"), std::string::npos);
  EXPECT_EQ(report.record.bytes, 60U);
}

TEST_F(DriveTest, UnreadableDriveIdentity_FailsTheDrive) {
  give_identity(1, '1');
  scan();
  std::filesystem::resize_file(on_drive(".spoor/drive.json", 1), 5);
  mark("a/c");
  expect_failed(scan(), 1);
  give_identity(1, '1');
  EXPECT_TRUE(scan().failed_drives.empty());
  expect_exact();
}

// What was read of it is not committed; what was read of the others is. Without an identity, the daemon has
// not run yet.
TEST_F(DriveTest, DriveReplacedDuringWalk_KeepsTotalsAndIsWalkedInFullLater) {
  for (const bool has_identity : {false, true}) {
    if (has_identity) give_identity(1, '1');
    scan();
    write_file(on_drive("a/b/2", 0), has_identity ? 4 : 3);
    write_file(on_drive("a/c/2", 1), has_identity ? 8 : 7);
    mark("a/b");
    mark("a/c");
    reader.before_read = [this](std::string_view path) {
      if (path == "a/c" && !std::filesystem::exists(temp / "unmounted")) unmount_from_a_full_directory(1);
    };
    const ScanReport report = scan();
    reader.before_read = nullptr;
    expect_failed(report, 1);
    EXPECT_EQ(report.record.bytes, has_identity ? 71U : 63U)
        << "the other drive's change, and its own totals";
    EXPECT_FALSE(usage("beneath"));
    mount(1);
    EXPECT_TRUE(scan().failed_drives.empty());
    expect_exact();
  }
}

TEST_F(DriveTest, SameDirectoryAtTwoPaths_IsWalkedOnceAndReported) {
  std::filesystem::create_directory_symlink(drive(0), temp / "link");
  options.drives.push_back({temp / "link", ""});
  const ScanReport report = scan_counting_reads();
  expect_failed(report, 2);
  EXPECT_EQ(report.record.bytes, 60U);
  EXPECT_EQ(reader.read_paths.count("a/b"), 2U) << "once on each of the two that are drives";
  EXPECT_NE(failure(report).find("the same directory"), std::string::npos);
}

TEST_F(DriveTest, SameDirectoryAtTwoPaths_DriveWithIdentityIsKept) {
  std::filesystem::create_directory_symlink(drive(1), temp / "link");
  options.drives[0].path = temp / "link";
  give_identity(1, '1');
  expect_failed(scan(), 0);
}

TEST_F(DriveTest, DriveLinkedInsideAnother_IsReportedAndNotWalked) {
  std::filesystem::create_directory_symlink(drive(0) / "a", temp / "link");
  options.drives.insert(options.drives.begin(), {temp / "link", ""});
  const ScanReport report = scan();
  expect_failed(report, 0);
  EXPECT_EQ(report.record.bytes, 60U);
  EXPECT_FALSE(usage("b"));
}

// As an older version did it, or before the link was made.
TEST_F(DriveTest, SameDirectoryAtTwoPaths_DropsTotalsAndWalksOnceSeparate) {
  std::filesystem::create_directory(temp / "third");
  options.drives.push_back({temp / "third", ""});
  write_file(on_drive("d/1", 2), 5);
  EXPECT_EQ(scan().record.bytes, 65U);
  std::filesystem::rename(temp / "third", temp / "aside");
  std::filesystem::create_directory_symlink(drive(0), temp / "third");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.bytes, 60U);
  EXPECT_EQ(report.record.figures.dirs_deleted, 2U);
  expect_failed(scan(), 2);
  std::filesystem::remove(temp / "third");
  std::filesystem::rename(temp / "aside", temp / "third");
  EXPECT_TRUE(scan().failed_drives.empty());
  expect_exact();
}

TEST_F(DriveTest, DriveIdentityBecomesKnown_NothingIsRead) {
  scan();
  give_identity(1, '1');
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
  options.drives[1].identity.clear();  // and one that is not told does not either
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(DriveTest, EmptyDriveWithNewIdentity_IsAcceptedAsEmpty) {
  give_identity(1, '1');
  scan();
  unmount(1, true);
  give_identity(1, '2');
  const ScanReport report = scan();
  EXPECT_TRUE(report.failed_drives.empty());
  expect_exact();
}

// Ids of drives are given again; what was known of the one before must not be.
TEST_F(DriveTest, RemovedDrive_ItsIdentityIsForgotten) {
  give_identity(1, '1');
  scan();
  const Drive second = options.drives.back();
  options.drives.pop_back();
  scan();
  options.drives.push_back(second);
  give_identity(1, '2');
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_deleted, 0U);
  expect_exact();
}

TEST_F(DriveTest, DriveRootCannotBeListed_FailsTheDrive) {
  scan();
  mark("a");
  reader.list_errors[""] = EIO;
  const ScanReport report = scan();
  EXPECT_EQ(report.failed_drives.size(), 2U);
  EXPECT_EQ(report.record.bytes, 60U);
  reader.repair();
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths.count("a/c"), 1U);
  expect_exact();
}

TEST_F(DriveTest, DriveMissingFromTheStart_IsWalkedWhenItAppears) {
  unmount(1, false);
  expect_failed(scan(), 1);
  EXPECT_FALSE(is_complete(""));
  mount(1);
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_new, 4U);
  EXPECT_EQ(report.record.figures.dirs_deleted, 0U);
  expect_exact();
}

TEST_F(DriveTest, AddedDrive_IsWalkedInFull) {
  const Drive second = options.drives.back();
  options.drives.pop_back();
  scan();
  EXPECT_EQ(usage("")->total.bytes, 10U);
  options.drives.push_back(second);
  const ScanReport report = scan();
  EXPECT_FALSE(report.record.walked_everything);
  EXPECT_EQ(report.record.figures.dirs_skipped, 3U);
  EXPECT_EQ(report.record.figures.dirs_walked, 4U);
  expect_exact();
}

TEST_F(DriveTest, RemovedDrive_LosesTotalsAndReturnsUnknown) {
  scan();
  const Drive second = options.drives.back();
  options.drives.pop_back();
  const ScanReport report = scan();
  EXPECT_EQ(report.record.figures.dirs_deleted, 0U) << "nobody deleted anything";
  EXPECT_EQ(report.record.bytes, 10U);
  expect_exact();
  options.drives.push_back(second);
  write_file(on_drive("a/b/2", 1), 10);
  scan();
  expect_exact();
}

TEST_F(DriveTest, DrivePathSpelledDifferently_IsTheSameDrive) {
  scan();
  options.drives[0].path = (temp / "one").native() + "/";
  options.drives[1].path = temp / "one" / ".." / "two";
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(DriveTest, DuplicateOrRelativeDrive_IsAnError) {
  using PathAndError = std::pair<std::string, const char*>;
  for (const auto& [path, why] :
       {PathAndError((temp / "one").native() + "/", "twice"), PathAndError("two", "absolute")}) {
    options.drives[1].path = path;
    const auto report = try_scan();
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, std::errc::invalid_argument);
    EXPECT_NE(report.error().message.find(why), std::string::npos);
  }
}

}  // namespace
}  // namespace spoor::scanner
