// Drives that are unmounted, fill up or turn read-only while the daemon runs: another one takes the
// snapshot, nothing is written to the directory beneath, and the drive is saved to once it is well again.
#include <gmock/gmock.h>

#include <optional>

#include "tests/faults/drive_fixture.h"
#include "tests/faults/mounts.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_totals.h"

namespace spoor::faults {
namespace {

class MountedDriveTest : public DriveTest {
 protected:
  void SetUp() override {
    if (auto why = why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    add_drive();
    disk_.emplace(directory_ / "disk");
    disk_->mount_tmpfs("4m");
    drive_.emplace(drive(1));
    drive_->mount_directory(disk_->path());
  }

  MountPoint& mounted() { return *drive_; }

 private:
  std::optional<MountPoint> disk_;  // the disk; it keeps what is on it while it is not mounted as a drive
  std::optional<MountPoint> drive_;

 protected:
  const fs::path disk_path_ = directory_ / "disk";
};

TEST_F(MountedDriveTest, UnmountedDrive_IsNotWrittenTo) {
  start();
  mounted().unmount();
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  expect_refused(1, "not mounted");
  EXPECT_TRUE(fs::is_empty(drive(1)));

  mounted().mount_directory(disk_path_);
  EXPECT_TRUE(save());
  expect_saved(1);
}

TEST_F(MountedDriveTest, UnmountedDrive_AtTheStart_IsNotWrittenTo) {
  start();
  const std::string before = instance();
  EXPECT_TRUE(mark("bucket/a"));
  kill_hard();
  mounted().unmount();
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  expect_refused(1, "not mounted");
  EXPECT_TRUE(fs::is_empty(drive(1)));
  EXPECT_EQ(stop(), 0) << "one drive that takes it is enough";
  EXPECT_TRUE(fs::is_empty(drive(1)));
}

TEST_F(MountedDriveTest, AnotherDiskMountedInItsPlace_IsNotWrittenTo) {
  start();
  mounted().unmount();
  MountPoint other(drive(1));
  other.mount_tmpfs("1m");
  EXPECT_TRUE(save());
  expect_refused(1, "carries no identity");
  EXPECT_TRUE(fs::is_empty(drive(1)));
}

// Mounts that came up in another order.
TEST_F(MountedDriveTest, OneDiskAtTwoPaths_IsWrittenToOnce) {
  start();
  mounted().unmount();
  mounted().mount_directory(drive(0));
  EXPECT_TRUE(save());
  expect_refused(1, "carries another drive's identity");
  EXPECT_EQ(accept(drive(1)), 409U);
}

class ImageDriveTest : public DriveTest {
 protected:
  void SetUp() override {
    if (auto why = why_no_images(); !why.empty()) GTEST_SKIP() << why;
    add_drive();
    make_image(directory_ / "image", std::size_t{16} << 20U);
    disk_.emplace(drive(1));
    disk_->mount_image(directory_ / "image");
  }

  MountPoint& disk() { return *disk_; }

 private:
  std::optional<MountPoint> disk_;
};

TEST(DriveSpaceTest, BlocksReservedForRoot_AreNotFree) {
  if (auto why = why_no_images(); !why.empty()) GTEST_SKIP() << why;
  const support::TempDirectory directory;
  make_image(directory / "image", std::size_t{16} << 20U, {"-m", "20"});
  MountPoint disk(directory / "disk");
  disk.mount_image(directory / "image");
  const auto space = base::PosixFileSystem().space(disk.path()).value();
  EXPECT_LT(space.used_bytes + space.free_bytes, space.bytes - space.bytes / 10);
}

TEST_F(ImageDriveTest, FullDrive_KeepsItsSnapshotUntilThereIsSpace) {
  start();
  const std::string old = content(snapshot_on(drive(1)));
  {
    const Filler filler(drive(1) / "filler");
    EXPECT_TRUE(mark("bucket/a"));
    EXPECT_TRUE(save()) << "the other drive is fine";
    expect_refused(1, "No space left");
    EXPECT_EQ(content(snapshot_on(drive(1))), old) << "whole or not at all";
    EXPECT_EQ(request("GET", "/readyz").status, 200U);
    EXPECT_TRUE(mark("bucket/b"));
  }
  EXPECT_TRUE(save());
  expect_saved(1);
}

// As the clone of a failing disk, or a snapshot that was restored: the same identity, and no mark.
class RolledBackDriveTest : public ImageDriveTest {
 protected:
  void change_and_scan(const std::string& path) {
    fs::create_directories((drive(1) / path).parent_path());
    std::ofstream(drive(1) / path) << path;
    ASSERT_TRUE(mark(path));
    ASSERT_EQ(spoor({"scan"}).code, 0);
  }

  void copy_disk(const char* from, const char* to) {
    disk().unmount();
    fs::copy_file(directory_ / from, directory_ / to, fs::copy_options::overwrite_existing);
    disk().mount_image(directory_ / "image");
  }

  void expect_walked() {
    const auto result = spoor({"scan"});
    EXPECT_EQ(result.code, 0) << result.err;
    EXPECT_THAT(result.out, testing::HasSubstr("was rolled back, or is an older copy"));
    EXPECT_EQ(spoor_json({"usage"})["files"], support::walk_independently({drive(0), drive(1)}).files);
    EXPECT_THAT(spoor({"scan"}).out, testing::Not(testing::HasSubstr("rolled back"))) << "once";
  }
};

TEST_F(RolledBackDriveTest, WhileTheDaemonRunsOrIsStopped_IsWalked) {
  start();
  for (const bool is_stopped : {false, true}) {
    change_and_scan(is_stopped ? "a/c/1" : "a/b/1");
    copy_disk("image", "old");
    change_and_scan(is_stopped ? "a/c/2" : "a/b/2");
    if (is_stopped) {
      EXPECT_EQ(stop(), 0);
    }
    copy_disk("old", "image");
    if (is_stopped) start();
    expect_walked();
  }
}

// Not even SIGKILL ends the thread that writes to it.
TEST_F(ImageDriveTest, DriveHangs_OthersAreSavedAndTheStopIsClean) {
  start();
  const std::string before = instance();
  {
    const FrozenDisk frozen(drive(1));
    EXPECT_TRUE(mark("bucket/a"));
    EXPECT_TRUE(save());
    expect_refused(1, "does not respond within 10 s");
    EXPECT_EQ(request("GET", "/readyz").status, 200U);
    EXPECT_TRUE(mark("bucket/b"));
    EXPECT_TRUE(save());
    daemon_->signal(SIGTERM);
    daemon_->wait_for("the process is gone once the drive responds");
    EXPECT_NE(daemon_->log().find("stopped cleanly"), std::string::npos) << daemon_->log();
  }
  EXPECT_EQ(daemon_->wait(), 0) << daemon_->log();
  start();
  EXPECT_EQ(instance(), before) << daemon_->log();
  for (const char* path : {"bucket/a", "bucket/b"}) {
    EXPECT_EQ(get(std::string("/v1/dirty?path=") + path)["dirty"], true) << path;
  }
  expect_saved(1);
}

TEST_F(ImageDriveTest, ReadOnlyDrive_GetsTheNextSnapshotOnceWritable) {
  start();
  disk().make_read_only();
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  expect_refused(1, "Read-only file system");
  disk().make_writable();
  EXPECT_TRUE(save());
  expect_saved(1);
}

TEST_F(ImageDriveTest, BrokenDrive_GetsTheNextSnapshotOnceRemounted) {
  start();
  disk().abort();
  EXPECT_TRUE(mark("bucket/a"));
  EXPECT_TRUE(save());
  expect_refused(1, "Read-only file system");
  disk().unmount();
  EXPECT_TRUE(save());
  expect_refused(1, "not mounted");
  disk().mount_image(directory_ / "image");
  EXPECT_TRUE(save());
  expect_saved(1);
}

TEST_F(ImageDriveTest, OnlyDriveReadOnly_GetsASnapshotByItselfOnceWritable) {
  SPOOR_RANDOM(random);
  Load load(random);
  config_["drives"] = {drive(1)};
  start();
  load.start(port());
  disk().make_read_only();
  EXPECT_FALSE(save());
  EXPECT_EQ(request("GET", "/readyz").status, 503U);
  ASSERT_TRUE(load.wait_for_acknowledged(50)) << "the journal is elsewhere";
  disk().make_writable();
  wait_until_ready();
  expect_kill_loses_nothing(load);
}

}  // namespace
}  // namespace spoor::faults
