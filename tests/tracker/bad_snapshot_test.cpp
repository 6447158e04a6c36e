// Whatever lies where a snapshot should: the node starts, knows what it has lost, says which file and why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>

#include "tests/tracker/minio_samples.h"
#include "tests/tracker/node.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using Files = std::unique_ptr<MemoryFileSystem>;

class BadSnapshotTest : public ::testing::Test {
 protected:
  BadSnapshotTest() {
    make_directories(files_);
    Node node(files_, clock_, options());
    instance_ = node.instance();
    EXPECT_TRUE(node.mark_durably(dir("b/saved")));
    EXPECT_TRUE(node.save().durable());
    EXPECT_TRUE(node.mark_durably(dir("b/journaled")));
    whole_ = files_.content(file(0)).value();
  }

  static std::filesystem::path file(std::size_t drive) { return snapshot_file(node_drives[drive]); }

  // Small snapshots: their false positives do not matter here.
  static Persistence::Options options() {
    auto options = node_options(Durability::disk);
    options.tracker.levels = LevelSchedule(30, 0.15);
    return options;
  }

  // Starts on the files with `bytes` in the place of the snapshots of these drives.
  void start_with(const std::string& bytes, const std::vector<std::size_t>& drives, const std::string& what) {
    SCOPED_TRACE(what);
    const Files files = files_.clone();
    for (const std::size_t drive : drives) files->put(file(drive), bytes);
    Node node(*files, clock_, options());
    for (const std::size_t drive : drives) {
      EXPECT_THAT(node.persistence().report().notes, Contains(HasSubstr(file(drive).native())));
    }
    const bool is_lost = drives.size() == node_drives.size();
    EXPECT_EQ(!node.loss().empty(), is_lost) << node.loss();
    EXPECT_EQ(node.instance() == instance_, !is_lost);
    EXPECT_TRUE(node.is_dirty("b/saved"));
    EXPECT_TRUE(node.is_dirty("b/journaled"));
    EXPECT_TRUE(!is_lost || node.is_dirty("anything/at/all"));
    EXPECT_TRUE(node.mark_durably(dir("b/after")));
    EXPECT_TRUE(node.save().durable());
    for (const std::size_t drive : drives) {
      EXPECT_TRUE(decode_snapshot(files->content(file(drive)).value())) << "replaced by a good one";
      EXPECT_THAT(asides(*files, drive), Contains(bytes)) << "and kept aside";
    }
  }

  static std::vector<std::string> asides(const MemoryFileSystem& files, std::size_t drive) {
    std::vector<std::string> contents;
    for (const std::string& name : files.names_in(file(drive).parent_path())) {
      if (name.starts_with(".tracker.bin.")) {
        contents.push_back(files.content(file(drive).parent_path() / name).value());
      }
    }
    return contents;
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
  InstanceId instance_;
  std::string whole_;
};

TEST_F(BadSnapshotTest, FlippedByte_IsDetectedOnOneDriveAndOnAll) {
  for (std::size_t at = 0; at < whole_.size(); ++at) {
    std::string flipped = whole_;
    flipped[at] = static_cast<char>(flipped[at] ^ 0x5a);
    start_with(flipped, {0}, "one drive, byte " + std::to_string(at));
    start_with(flipped, {0, 1}, "both drives, byte " + std::to_string(at));
  }
}

TEST_F(BadSnapshotTest, Truncation_IsDetectedOnOneDriveAndOnAll) {
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    start_with(whole_.substr(0, size), {1}, "one drive, size " + std::to_string(size));
    start_with(whole_.substr(0, size), {0, 1}, "both drives, size " + std::to_string(size));
  }
}

TEST_F(BadSnapshotTest, NewerVersion_IsKeptAsideUnderItsVersion) {
  const std::string future = "\x09 from the future";
  start_with(future, {0}, "one drive");
  start_with(future, {0, 1}, "both drives");
  for (const auto& drive : node_drives) files_.put(snapshot_file(drive), future);
  Node node(files_, clock_, options());
  node.save();
  for (const auto& drive : node_drives) {
    EXPECT_EQ(files_.content(snapshot_file(drive).native() + ".v9"), future);
  }
}

// MinIO's file is read, and is none of this instance's.
TEST_F(BadSnapshotTest, MinioSnapshot_IsALossOnlyIfOnEveryDrive) {
  const std::string minio = minio_file(1'677'169'754, 20, {18, 19});
  for (const bool on_both : {false, true}) {
    const Files files = files_.clone();
    files->put(file(0), minio);
    if (on_both) files->put(file(1), minio);
    Node node(*files, clock_, options());
    EXPECT_EQ(node.loss().empty(), !on_both);
    EXPECT_TRUE(node.is_dirty("b/saved"));
    EXPECT_TRUE(node.is_dirty("b/journaled"));
    if (on_both) {
      EXPECT_TRUE(node.is_dirty("anything/at/all"));
      EXPECT_GT(node.tracker().state().current, CycleId{20}) << "its numbers go on";
    }
  }
}

// The snapshots are the same on every drive; what tells swapped drives is their identity.
TEST_F(BadSnapshotTest, SwappedDrives_AreNeitherReadNorWritten) {
  const auto identity = [](std::size_t drive) { return node_drives[drive] / ".spoor/drive.json"; };
  const std::string one = files_.content(identity(0)).value();
  const std::string two = files_.content(identity(1)).value();
  files_.put(identity(0), two);
  files_.put(identity(1), one);
  Node node(files_, clock_, options());
  EXPECT_NE(node.loss(), "") << "there is no snapshot to go by";
  EXPECT_TRUE(node.is_dirty("anything/at/all"));
  const SavedSnapshot saved = node.save();
  for (std::size_t drive = 0; drive < 2; ++drive) {
    EXPECT_FALSE(saved.drives[drive].ok);
    EXPECT_THAT(saved.drives[drive].error, HasSubstr("carries another drive's identity"));
    EXPECT_THAT(saved.drives[drive].error, HasSubstr("spoor drives accept " + node_drives[drive].native()));
    EXPECT_EQ(files_.content(file(drive)), whole_) << "not touched";
  }
}

TEST_F(BadSnapshotTest, SnapshotOfAnotherNode_IsKeptAsideAsForeign) {
  Snapshot foreign = snapshot_of(varied_state());
  foreign.owner.node = "another";
  start_with(encode_snapshot(foreign), {1}, "one drive");
  for (const auto& drive : node_drives) files_.put(snapshot_file(drive), encode_snapshot(foreign));
  Node node(files_, clock_, options());
  EXPECT_NE(node.loss(), "");
  node.save();
  EXPECT_TRUE(files_.exists(file(0).native() + ".foreign"));
}

// The drive with the newer one comes last in the list, or first; the clock went back between the saves.
TEST_F(BadSnapshotTest, NewestSnapshot_IsChosenByGenerationNotTime) {
  for (const std::size_t older : {0U, 1U}) {
    const Files files = files_.clone();
    {
      Node node(*files, clock_, options());
      clock_.set_wall(clock_.wall_now() - std::chrono::hours(100));
      ASSERT_TRUE(node.mark_durably(dir("b/newer")));
      ASSERT_TRUE(node.save().durable());
    }
    files->put(file(older), whole_);
    Node node(*files, clock_, options());
    EXPECT_EQ(node.loss(), "");
    EXPECT_TRUE(node.is_dirty("b/newer"));
  }
}

}  // namespace
}  // namespace spoor::tracker
