// Subvolumes and snapshots of btrfs below a drive are part of it. Their inode numbers repeat, their device
// numbers are others after each mount, and a snapshot has the times of what it was made of.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/faults/mounts.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/file_times.h"
#include "tests/support/process.h"
#include "tests/watch/disk.h"

namespace spoor::scanner {
namespace {

using Paths = std::multiset<std::string>;

class SubvolumeTest : public ScannedNode {
 protected:
  void SetUp() override {
    if (auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    try {
      disk_.emplace(watch::FileSystem::btrfs, temp.path());
    } catch (const std::exception& error) {
      GTEST_SKIP() << "needs btrfs, mkfs.btrfs and loop devices: " << error.what();
    }
    options.drives[0].path = disk_->path();
    clock.set_wall(reader.clock.wall_now());
  }

  static void btrfs(std::vector<std::string> command) {
    command.insert(command.begin(), {"btrfs", "subvolume"});
    const auto done = support::run_command(command);
    ASSERT_EQ(done.code, 0) << done.err;
  }
  void make_subvolume(const std::string& path) const { btrfs({"create", on_drive(path).native()}); }
  void make_snapshot(const std::string& of, const std::string& path) const {
    btrfs({"snapshot", on_drive(of).native(), on_drive(path).native()});
  }
  void delete_subvolume(const std::string& path) const { btrfs({"delete", on_drive(path).native()}); }

  struct stat status_of(const std::string& path) const {
    struct stat status{};
    EXPECT_EQ(::stat(on_drive(path).c_str(), &status), 0) << path;
    return status;
  }
  ino_t inode(const std::string& path) const { return status_of(path).st_ino; }

  // A subvolume `p/vol`, and `p/old`, a snapshot of it, with other files in a directory of the same identity.
  void make_alike() {
    make_directory("p");
    make_subvolume("p/vol");
    make_file("p/vol/x/1");
    make_snapshot("p/vol", "p/old");
    make_file("p/vol/x/2");
    ASSERT_EQ(inode("p/vol/x"), inode("p/old/x"));
  }

  std::optional<watch::Disk> disk_;
};

TEST_F(SubvolumeTest, NestedSubvolumesAndSnapshots_AreCounted) {
  make_file("a/1");
  make_subvolume("vol");
  make_file("vol/x/1", 1000);
  make_subvolume("vol/x/inner");
  make_file("vol/x/inner/1", 500);
  make_snapshot("vol", "snap");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_TRUE(report.mounts.empty());
  EXPECT_EQ(report.record.files, 4U);
  expect_exact(
      Newest::unknown);  // a snapshot has an empty directory for an inner subvolume, made at each look
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths, Paths()) << "nothing is left for another scan";
}

TEST_F(SubvolumeTest, HardLinksWithEqualInodeNumbers_AreSeparateFiles) {
  for (const std::string vol : {"one", "two"}) {
    make_subvolume(vol);
    make_file(vol + "/file", vol.size() * 100);
    std::filesystem::create_hard_link(on_drive(vol + "/file"), on_drive(vol + "/link"));
  }
  make_directory("two/x");
  rename("two/link", "two/x/link");
  ASSERT_EQ(inode("one/file"), inode("two/file"));
  scan();
  EXPECT_EQ(usage("")->total.bytes, 600U);
  expect_exact();
}

TEST_F(SubvolumeTest, SwappedSubvolumes_AreNoticed) {
  make_alike();
  scan();
  rename("p/vol", "p/swap");
  rename("p/old", "p/vol");
  rename("p/swap", "p/old");
  mark("p");
  scan();
  EXPECT_EQ(files("p/vol"), 1U);
  expect_exact();
}

TEST_F(SubvolumeTest, SnapshotInPlaceOfSubvolume_IsNoticed) {
  make_alike();
  scan();
  delete_subvolume("p/vol");
  make_snapshot("p/old", "p/vol");
  mark("p");
  scan();
  EXPECT_EQ(files("p/vol"), 1U);
  expect_exact();
}

// By each way that a walk takes to it.
TEST_F(SubvolumeTest, DirectoryInSnapshot_HasAnIdentityOfItsOwn) {
  make_alike();
  const PosixDirectoryReader posix;
  const auto top = posix.open_drive(drive());
  ASSERT_TRUE(top);
  std::set<std::uint64_t> inodes;
  for (const std::string vol : {"p/vol", "p/old"}) {
    const auto parent = posix.open(*top, vol, vol);
    ASSERT_TRUE(parent);
    const auto opened = posix.open(*parent, "x", vol + "/x");
    ASSERT_TRUE(opened);
    EXPECT_EQ(opened->mount, top->mount);
    EXPECT_EQ(posix.open(*top, vol + "/x", vol + "/x")->inode, opened->inode);
    EXPECT_EQ(posix.look_at(*top, vol + "/x", vol + "/x")->inode, opened->inode);
    EXPECT_EQ(posix.look_at(*parent, "x", vol + "/x")->inode, opened->inode);
    const auto listed = posix.read(*parent, vol, options.rules, {}, {});
    ASSERT_EQ(listed->subdirectories.size(), 1U);
    EXPECT_EQ(listed->subdirectories[0].inode, opened->inode);
    inodes.insert(opened->inode);
  }
  EXPECT_EQ(inodes.size(), 2U);
  EXPECT_EQ(posix.open(*top, "p", "p")->inode, inode("p")) << "as ever outside of them";
}

TEST_F(SubvolumeTest, ChangeInside_IsReadAlone) {
  make_subvolume("vol");
  for (const char* path : {"vol/x/y/1", "vol/x/z/1", "vol/a/1", "b/1"}) make_file(path);
  scan();
  make_file("vol/x/y/2");
  mark("vol/x/y/2");
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths, (Paths{"", "vol", "vol/x", "vol/x/y"}));
  expect_exact();
}

TEST_F(SubvolumeTest, WayToChangeInside_IsNotListed) {
  reader.changes_times = true;
  make_subvolume("vol");
  for (const char* path : {"vol/x/y/1", "vol/x/z/1"}) make_file(path);
  scan();
  support::outlast_timestamp_step();
  make_file("vol/x/y/2");
  mark("vol/x/y/2");
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths, (Paths{"", "vol", "vol/x/y"}))
      << "the numbers that the two directories have for a subvolume are never the same: it is always read";
  expect_exact();
}

// By the times that this kernel gives the directory in which it is made.
TEST_F(SubvolumeTest, MadeInKnownDirectory_IsFound) {
  reader.changes_times = PosixDirectoryReader().changes_times_with_entries(*reader.open_drive(drive()));
  make_file("p/a/1");
  scan();
  support::outlast_timestamp_step();
  make_subvolume("p/vol");
  make_file("p/vol/1");
  mark("p/vol/1");
  scan();
  expect_exact();
}

TEST_F(SubvolumeTest, UnmarkedChangeInside_IsFoundByTheAudit) {
  make_subvolume("vol");
  for (const char* path : {"vol/x/1", "vol/y/1"}) make_file(path);
  options.audit_period = std::chrono::hours(1);
  scan();
  make_file("vol/x/2");
  clock.set_wall(reader.clock.wall_now() + std::chrono::hours(2));
  clock.advance(std::chrono::hours(2));
  EXPECT_EQ(scan().audit.missed_paths, std::vector<std::string>{"vol/x"});
  expect_exact();
}

TEST_F(SubvolumeTest, MountedAgain_OnlyChangesAreRead) {
  make_subvolume("vol");
  for (const char* path : {"vol/x/1", "vol/x/y/1"}) make_file(path);
  scan();
  const dev_t before = status_of("vol").st_dev;
  std::deque<faults::MountPoint> others;  // have numbers that are free, which other programs may free, too
  while (status_of("vol").st_dev == before) {
    ASSERT_LT(others.size(), 20U);
    ASSERT_TRUE(disk_->unmount());
    others.emplace_back(temp / ("other" + std::to_string(others.size()))).mount_tmpfs("1m");
    disk_->mount();
  }
  make_file("vol/x/2");
  mark("vol/x");
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths, (Paths{"", "vol", "vol/x"}));
  expect_exact();
}

TEST_F(SubvolumeTest, DriveInsideAnother_IsRefused) {
  make_subvolume("vol");
  make_file("vol/1");
  options.drives.push_back({drive() / "vol", ""});
  const ScanReport report = scan();
  ASSERT_EQ(report.failed_drives.size(), 1U);
  EXPECT_EQ(report.failed_drives[0].path, drive(1).native());
  EXPECT_EQ(report.record.files, 1U) << "each file is on one drive only";
}

}  // namespace
}  // namespace spoor::scanner
