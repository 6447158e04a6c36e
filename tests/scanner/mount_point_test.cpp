// Other mounts below a drive are not entered. Mounting marks nothing, so what they hide
// has to be looked at again once they are gone.

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/file_system.h"
#include "tests/faults/mounts.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class MountPointTest : public ScannedNode {};

TEST_F(MountPointTest, MountPoint_IsNotEnteredAndCountsAsEmpty) {
  make_file("a/mnt/b/1");
  make_file("a/1");
  reader.mount_points.insert("a/mnt");
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 0U);
  EXPECT_FALSE(was_read("a/mnt"));
  EXPECT_EQ(files("a"), 1U);
  EXPECT_EQ(usage("a")->total.dirs, 1U);
  EXPECT_EQ(files("a/mnt"), 0U);
  EXPECT_TRUE(is_complete("")) << "nothing was left out that belongs to the drive";
}

TEST_F(MountPointTest, LaterScan_RereadsOnlyPathToMountPoint) {
  make_file("a/mnt/b/1");
  make_file("c/1");
  reader.mount_points.insert("a/mnt");
  scan();
  scan_counting_reads();
  EXPECT_EQ(reader.read_paths, (std::multiset<std::string>{"", "a"}))
      << "the way to it, to see whether it is gone";
  EXPECT_EQ(files("a/mnt"), 0U);
}

TEST_F(MountPointTest, Unmounted_HiddenDirectoriesAreRead) {
  make_file("a/mnt/b/1");
  scan();
  make_file("a/mnt/b/2");
  mark("a/mnt/b");
  reader.mount_points.insert("a/mnt");
  scan();
  EXPECT_FALSE(usage("a/mnt/b"));
  reader.repair();
  scan();
  expect_exact();
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty());
}

TEST_F(MountPointTest, MountOverCleanDirectory_KeepsItsTotals) {
  make_file("a/mnt/b/1");
  scan();
  reader.mount_points.insert("a/mnt");
  scan();
  EXPECT_EQ(files("a/mnt"), 1U);
  reader.repair();
  make_file("a/mnt/b/2");
  mark("a/mnt/b");
  scan();
  expect_exact();
}

TEST_F(MountPointTest, UnopenableMountPoint_IsIncompleteUntilReadable) {
  make_file("a/mnt/b/1");
  reader.mount_points.insert("a/mnt");
  scan();
  reader.repair();
  reader.open_errors["a/mnt"] = EIO;
  EXPECT_EQ(scan().record.errors, 1U);
  EXPECT_FALSE(is_complete("a/mnt"));
  reader.repair();
  scan();
  expect_exact();
}

class RealMountTest : public ScannedNode {
 protected:
  void SetUp() override {
    if (auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    make_file("a/1");
    make_file("b/hidden/1");
  }

  // Scans, and expects that it enters all but `b`, which it names.
  void expect_b_left_out() {
    const ScanReport report = scan();
    EXPECT_THAT(report.mounts, testing::ElementsAre(on_drive("b").native()));
    EXPECT_EQ(report.mount_count, 1U);
    EXPECT_EQ(report.record.errors, 0U);
    EXPECT_EQ(report.record.files, 1U);
    EXPECT_EQ(files("b"), 0U);
  }

  // Without a mark.
  void expect_b_entered() {
    mount_.reset();
    EXPECT_TRUE(scan().mounts.empty());
    expect_exact();
  }

  std::optional<faults::MountPoint> mount_;
};

TEST_F(RealMountTest, BindMountInsideTheDrive_CountsOnceUntilItIsGone) {
  mount_.emplace(on_drive("b")).mount_directory(on_drive("a"));
  expect_b_left_out();
  expect_b_left_out();
  expect_b_entered();
}

TEST_F(RealMountTest, OtherFileSystem_IsNotEnteredUntilItIsGone) {
  mount_.emplace(on_drive("b")).mount_tmpfs("1m");
  make_file("b/1");
  expect_b_left_out();
  expect_b_entered();
}

TEST_F(RealMountTest, BindMountOverKnownDirectory_IsLeftOutByTheAudit) {
  options.audit_period = std::chrono::hours(1);
  scan();
  mount_.emplace(on_drive("b")).mount_directory(on_drive("a"));
  clock.advance(std::chrono::hours(2));
  EXPECT_EQ(scan().audit.missed_paths, std::vector<std::string>()) << "mounting is no change to mark";
  expect_b_left_out();
}

// A FUSE file system whose server never responds, or is gone: whatever opens it hangs, or fails.
class FuseMountTest : public RealMountTest {
 protected:
  void TearDown() override { static_cast<void>(::umount2(on_drive("b").c_str(), MNT_DETACH)); }

  // The server is this process. Returns whether FUSE is there.
  bool mount_fuse() {
    server_.emplace(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
    const std::string options =
        "fd=" + std::to_string(server_->get()) + ",rootmode=40000,user_id=0,group_id=0";
    return server_->get() >= 0 &&
           ::mount("spoor-test", on_drive("b").c_str(), "fuse", 0, options.c_str()) == 0;
  }

  std::optional<base::Descriptor> server_;
};

TEST_F(FuseMountTest, ServerThatDoesNotRespond_IsNotOpened) {
  scan();
  if (!mount_fuse()) GTEST_SKIP() << "needs FUSE";
  options.full = true;
  expect_b_left_out();
  mark("b/hidden");
  options.full = false;
  expect_b_left_out();
}

TEST_F(FuseMountTest, ServerThatIsGone_IsNotOpened) {
  if (!mount_fuse()) GTEST_SKIP() << "needs FUSE";
  server_.reset();
  expect_b_left_out();
  expect_b_left_out();
}

TEST_F(RealMountTest, MountedFile_TakesNoSpace) {
  make_file("a/file");
  make_file("b/big", 1000);
  std::filesystem::create_hard_link(on_drive("b/big"), on_drive("b/again"));
  const auto file = on_drive("a/file");
  ASSERT_EQ(::mount(on_drive("b/big").c_str(), file.c_str(), nullptr, MS_BIND, nullptr), 0);
  scan();
  EXPECT_EQ(::umount(file.c_str()), 0);
  EXPECT_EQ(files("a"), 2U);
  EXPECT_EQ(usage("a")->total.bytes, 10U);
  EXPECT_EQ(usage("b")->total.bytes, 1010U) << "the mounted file itself, with two names";
  EXPECT_EQ(usage("")->total.bytes, 1020U);
}

}  // namespace
}  // namespace spoor::scanner
