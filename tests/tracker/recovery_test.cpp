// A node that stops, crashes and loses things between its runs, on a file system in memory.
#include "tracker/storage/recovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "tests/tracker/minio_samples.h"
#include "tests/tracker/node.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;
using ::testing::Contains;
using ::testing::HasSubstr;

const std::filesystem::path record_file = node_data_dir / "instance.json";

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() { make_directories(files_); }

  // Without a journal: what holds of every start is seen best without one.
  Node start() { return {files_, clock_, node_options(Durability::memory)}; }

  static CycleRequest from(const Cursor& cursor) {
    CycleRequest request;
    request.oldest = cursor.cycle;
    request.instance = cursor.instance;
    return request;
  }
  static Cursor cursor_of(Node& node) { return node.tracker().cycle(read_all(node.tracker())).next(); }
  static MarkSet all_marks(Node& node) { return node.tracker().cycle(read_all(node.tracker())).marks; }

  // A first run that marks `bucket/a` in cycle 1, opens cycle 2 and stops. Its scanner's cursor.
  Cursor first_run() {
    Node node = start();
    mark(node.tracker(), {dir("bucket/a")});
    node.tracker().advance({2});
    const Cursor cursor = cursor_of(node);
    node.stop();
    return cursor;
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

TEST_F(RecoveryTest, NewNode_StartsCompleteSinceBirthInAnInstanceOfItsOwn) {
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  const TrackerState state = node.tracker().state();
  EXPECT_TRUE(state.complete_since_birth);
  EXPECT_FALSE(state.instance.is_none());
  EXPECT_EQ(state.current, CycleId{1});
  EXPECT_TRUE(state.history.empty()) << "no gap";
  MemoryFileSystem other_files;
  make_directories(other_files);
  EXPECT_NE(Node(other_files, clock_, node_options(Durability::memory)).instance(), state.instance);
}

TEST_F(RecoveryTest, SnapshotOfAnotherNode_IsNotALoss) {
  const Snapshot foreign{{"cluster", "other"}, 9, clock_.wall_now(), varied_state()};
  files_.put(snapshot_file(node_drives[0]), encode_snapshot(foreign));
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.tracker().state().complete_since_birth);
}

TEST_F(RecoveryTest, CleanStop_KeepsInstanceAndExactlyTheMarks) {
  const Cursor cursor = first_run();
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.instance(), cursor.instance);
  EXPECT_TRUE(node.tracker().state().complete_since_birth);
  EXPECT_FALSE(node.tracker().cycle(from(cursor)).gap);
  EXPECT_EQ(node.tracker().dirty("bucket/a", {}).latest, CycleId{1});
  EXPECT_FALSE(node.is_dirty("bucket/b"));
}

// Each after a first run that stopped cleanly, unless it says something else. A loss comes to another
// instance that owns up to a gap over everything.
TEST_F(RecoveryTest, Loss_BeginsANewInstanceWithAGap) {
  const auto remove_snapshots = [](MemoryFileSystem& files) {
    for (const auto& drive : node_drives) ASSERT_TRUE(files.remove(snapshot_file(drive)));
  };
  const auto run_and_crash = [this](MemoryFileSystem& files, bool saves) {
    {
      Node crashed(files, clock_, node_options(Durability::memory));
      if (saves) crashed.save();
      mark(crashed.tracker(), {dir("bucket/never-saved")});
    }
    files.crash();
  };
  const std::pair<const char*, std::function<void(MemoryFileSystem&)>> cases[] = {
      // ancestor 6: a crash loses marks, and the answers still say complete.
      {"a crash with unsaved marks", [&](auto& files) { run_and_crash(files, false); }},
      {"a crash after a snapshot", [&](auto& files) { run_and_crash(files, true); }},
      {"snapshots removed", remove_snapshots},
      {"instance record removed", [](auto& files) { ASSERT_TRUE(files.remove(record_file)); }},
      {"instance record unreadable", [](auto& files) { files.put(record_file, "{"); }},
      {"a snapshot of another instance with the same generation",
       [this](auto& files) {
         for (const auto& drive : node_drives)
           files.put(snapshot_file(drive),
                     encode_snapshot({node_owner, 1, clock_.wall_now(), varied_state()}));
       }},
      // ancestor 2
      {"only corrupt snapshots, and no record",
       [](auto& files) {
         ASSERT_TRUE(files.remove(record_file));
         for (const auto& drive : node_drives) files.put(snapshot_file(drive), "");
       }},
      // The drive with the last generation is gone; the other one failed at that save.
      {"a stale snapshot",
       [this](auto& files) {
         files.fill(node_drives[1]);
         Node(files, clock_, node_options(Durability::memory)).stop();
         files.heal(node_drives[1]);
         ASSERT_TRUE(files.remove(snapshot_file(node_drives[0])));
       }},
  };
  const Cursor cursor = first_run();
  for (const auto& [what, lose] : cases) {
    SCOPED_TRACE(what);
    const auto files = files_.clone();
    lose(*files);
    Node node(*files, clock_, node_options(Durability::memory));
    EXPECT_FALSE(node.loss().empty());
    EXPECT_NE(node.instance(), cursor.instance);
    EXPECT_FALSE(node.tracker().state().complete_since_birth);
    EXPECT_TRUE(node.tracker().cycle(from(cursor)).gap);
    EXPECT_TRUE(all_marks(node).tree_marks().covers("")) << "a gap at the root";
  }
}

TEST_F(RecoveryTest, CrashBeforeFirstSave_IsALossNotABirth) {
  const InstanceId before = start().instance();
  files_.crash();
  Node node = start();
  EXPECT_NE(node.loss(), "");
  EXPECT_NE(node.instance(), before);
  EXPECT_FALSE(node.tracker().state().complete_since_birth);
}

TEST_F(RecoveryTest, LossAtHighestRequestCycle_StateCanBeSaved) {
  TrackerState highest = Tracker::born(InstanceId::random(), clock_);
  highest.current = {CycleId::request_max};
  for (const auto& drive : node_drives)
    files_.put(snapshot_file(drive), encode_snapshot({node_owner, 1, clock_.wall_now(), highest}));
  for (int run = 0; run < 3; ++run) start().save();
  Node node = start();
  const TrackerState state = node.tracker().state();
  EXPECT_EQ(state.current.value, CycleId::request_max + 4) << "one for each loss";
  EXPECT_TRUE(decode_snapshot(bytes_of(state)));
}

// Whatever is in the way of the one snapshot that is left, be it only that it cannot be made durable.
TEST_F(RecoveryTest, InstanceRecordRemovedAndOneFailedCall_IsNotABirth) {
  auto options = node_options(Durability::memory);
  options.drives = {node_drives[0]};
  Node(files_, clock_, options).stop();
  ASSERT_TRUE(files_.remove(record_file));
  const auto count = files_.clone();
  count->reset_calls();
  {
    const Node node(*count, clock_, options);
  }
  for (std::size_t call = 1; call <= count->calls(); ++call) {
    const auto files = files_.clone();
    files->fail_call(call, EIO);
    const auto started = Persistence::start(*files, clock_, options);
    if (!started) continue;
    EXPECT_NE((*started)->report().loss, "") << "call " << call;
    EXPECT_FALSE((*started)->tracker().state().complete_since_birth) << "call " << call;
  }
}

TEST_F(RecoveryTest, MinioSnapshot_IsImportedWithGap) {
  files_.put(snapshot_file(node_drives[0]), minio_file(1'677'169'754, 20, {18, 19}));
  Node node = start();
  EXPECT_FALSE(node.loss().empty());
  EXPECT_EQ(node.tracker().state().current, CycleId{21});
  EXPECT_TRUE(all_marks(node).tree_marks().covers(""));
}

TEST_F(RecoveryTest, LossWithFullHistory_KeepsSavedMarksCycleNumbersAndGap) {
  {
    Node node = start();
    for (std::uint64_t cycle = 2; cycle < 40; ++cycle) {
      mark(node.tracker(), {dir("bucket/" + std::to_string(cycle))});
      node.tracker().advance({cycle});
    }
    mark(node.tracker(), {dir("bucket/live")});
    node.save();
  }
  Node node = start();
  ASSERT_FALSE(node.loss().empty());
  const MarkSet all = all_marks(node);
  EXPECT_TRUE(all.tree_marks().covers(""));
  for (const char* path : {"bucket/2", "bucket/39", "bucket/live"})
    EXPECT_TRUE(all.filters_may_contain(hash_path(path))) << path;
  EXPECT_GT(node.tracker().state().current, CycleId{39}) << "numbers go on";
}

// ancestor 11: one full walk by each scanner, once.
TEST_F(RecoveryTest, GapAfterLoss_IsReportedOncePerCursorAndSurvivesACleanRestart) {
  const Cursor cursor = first_run();
  static_cast<void>(start());
  start().stop();
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_FALSE(node.tracker().state().complete_since_birth);
  EXPECT_TRUE(all_marks(node).tree_marks().covers(""));
  const CycleAnswer first = node.tracker().cycle(from(cursor));
  ASSERT_TRUE(first.gap);
  const CycleAnswer second = node.tracker().cycle(from(first.next()));
  EXPECT_FALSE(second.gap);
  EXPECT_TRUE(second.marks.empty());
}

// What the last run ignored it did not mark: others may have counted it.
TEST_F(RecoveryTest, NamespaceRulesChanged_IsALoss) {
  auto options = node_options(Durability::disk);
  options.rules = "any";
  Node(files_, clock_, options).stop();
  EXPECT_EQ(Node(files_, clock_, options).loss(), "");
  options.rules = "s3";
  EXPECT_NE(Node(files_, clock_, options).loss(), "");
}

// Whatever lies where a snapshot should: the node starts, knows what it has lost, says which file and why.
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
  void start_with(const std::string& bytes, const std::vector<std::size_t>& drives) {
    const auto files = files_.clone();
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
      if (name.starts_with(".tracker.bin."))
        contents.push_back(files.content(file(drive).parent_path() / name).value());
    }
    return contents;
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
  InstanceId instance_;
  std::string whole_;
};

TEST_F(BadSnapshotTest, BadFile_IsDetectedAndKeptAsideOnOneDriveAndOnAll) {
  Snapshot foreign = snapshot_of(varied_state());
  foreign.owner.node = "another";
  std::vector<std::string> bad{"\x09 from the future", encode_snapshot(foreign)};
  for (std::size_t at = 0; at < whole_.size(); ++at) {
    bad.push_back(flipped(whole_, at, 0x5a));
    bad.push_back(whole_.substr(0, at));
  }
  for (std::size_t number = 0; number < bad.size(); ++number) {
    SCOPED_TRACE(number);
    start_with(bad[number], {number / 2 % 2});
    start_with(bad[number], {0, 1});
  }
}

// MinIO's file is read, and is none of this instance's.
TEST_F(BadSnapshotTest, MinioSnapshot_IsALossOnlyIfOnEveryDrive) {
  const std::string minio = minio_file(1'677'169'754, 20, {18, 19});
  for (const bool on_both : {false, true}) {
    const auto files = files_.clone();
    files->put(file(0), minio);
    if (on_both) files->put(file(1), minio);
    Node node(*files, clock_, options());
    EXPECT_EQ(node.loss().empty(), !on_both);
    EXPECT_TRUE(node.is_dirty("b/saved"));
    EXPECT_TRUE(node.is_dirty("b/journaled"));
    if (!on_both) continue;
    EXPECT_TRUE(node.is_dirty("anything/at/all"));
    EXPECT_GT(node.tracker().state().current, CycleId{20}) << "its numbers go on";
  }
}

// The snapshots are the same on every drive; what tells swapped drives is their identity.
TEST_F(BadSnapshotTest, SwappedDrives_AreNeitherReadNorWritten) {
  const auto identity = [](std::size_t drive) { return node_drives[drive] / ".spoor/drive.json"; };
  const std::string one = files_.content(identity(0)).value();
  files_.put(identity(0), files_.content(identity(1)).value());
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

}  // namespace
}  // namespace spoor::tracker
