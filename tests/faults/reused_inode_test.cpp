// A file system that keeps no time of creation, and gives the inode numbers of removed directories to new
// ones.
#include <sys/stat.h>

#include <fstream>
#include <optional>

#include "tests/faults/drive_fixture.h"
#include "tests/faults/mounts.h"
#include "tests/support/process.h"

namespace spoor::faults {
namespace {

class SmallInodesTest : public DriveTest {
 protected:
  void SetUp() override {
    if (auto why = why_no_images(); !why.empty()) GTEST_SKIP() << why;
    make_image(directory_ / "image", std::size_t{16} << 20U, {"-I", "128"});
    disk_.emplace(directory_ / "small-inodes");
    disk_->mount_image(directory_ / "image");
    config_["drives"] = {disk_->path().native()};
  }

  // A tree of the same shape as any other that this made.
  void make_tree(const std::string& name, std::size_t bytes) const {
    fs::create_directories(on_disk(name) / "deep");
    std::ofstream(on_disk(name) / "deep" / "file") << std::string(bytes, 'x');
  }

  fs::path on_disk(const std::string& name) const { return disk_->path() / "bucket" / name; }

  static void copy_tree(const fs::path& from, const fs::path& to) {
    const auto done = support::run_command({"cp", "-aT", from.native(), to.native()});
    ASSERT_EQ(done.code, 0) << done.err;
  }

  static ino_t inode(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::stat(path.c_str(), &status), 0);
    return status.st_ino;
  }

  std::optional<MountPoint> disk_;
};

TEST_F(SmallInodesTest, TreeWithReusedInodeNumbers_IsWalked) {
  make_tree("x", 100);
  start();
  spoor_json({"scan"});
  ASSERT_EQ(spoor_json({"usage"})["bytes"], 100);
  const ino_t top = inode(on_disk("x"));
  const ino_t deep = inode(on_disk("x/deep"));
  fs::remove_all(on_disk("x"));
  make_tree("moved", 5);
  fs::rename(on_disk("moved"), on_disk("x"));
  ASSERT_EQ(inode(on_disk("x")), top) << "the test needs numbers that are given again";
  ASSERT_EQ(inode(on_disk("x/deep")), deep);
  ASSERT_TRUE(mark("bucket/x"));
  const auto scan = spoor_json({"scan"});
  EXPECT_EQ(scan["mode"], "incremental");
  EXPECT_EQ(spoor_json({"usage"})["bytes"], 5);
}

// Its top has neither a time of creation nor a generation, and the copy has the same identity.
TEST_F(SmallInodesTest, DriveReplacedByACopyOfItself_IsWalkedWhole) {
  const fs::path copy = directory_ / "copy";
  config_["drives"].push_back((directory_ / "second").native());
  fs::create_directory(directory_ / "second");
  start();
  make_tree("x", 100);
  ASSERT_TRUE(mark("bucket/x/deep"));
  spoor_json({"scan"});
  copy_tree(disk_->path(), copy);
  make_tree("x/late", 7);
  ASSERT_TRUE(mark("bucket/x/late/deep"));
  spoor_json({"scan"});
  ASSERT_EQ(spoor_json({"usage"})["bytes"], 107);
  stop();
  disk_->unmount();
  make_image(directory_ / "another", std::size_t{16} << 20U, {"-I", "128"});
  disk_->mount_image(directory_ / "another");
  // Else the copy of the identity may have the same inode, and its times are whole seconds here.
  fs::create_directory(disk_->path() / ".spoor");
  for (int i = 0; i < 8; ++i) std::ofstream(disk_->path() / ".spoor" / std::to_string(i));
  copy_tree(copy, disk_->path());
  start();
  spoor_json({"scan"});
  EXPECT_EQ(spoor_json({"usage"})["bytes"], 100);
}

}  // namespace
}  // namespace spoor::faults
