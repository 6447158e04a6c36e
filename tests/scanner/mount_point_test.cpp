// Other file systems mounted below a drive are not entered. Mounting marks nothing, so what they hide
// has to be looked at again once they are gone.

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace spoor::scanner
