// A node that stops, crashes and loses things between its runs, on a file system in memory.

#include "tracker/storage/recovery.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "tests/tracker/minio_samples.h"
#include "tests/tracker/node.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;

const std::filesystem::path record_file = node_data_dir / "instance.json";

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() { make_directories(files_); }

  // Without a journal: what holds of every start is seen best without one.
  Node start() { return {files_, clock_, node_options(Durability::memory)}; }

  // A first run that marks `bucket/a` in cycle 1, opens cycle 2 and stops. Its scanner's cursor.
  Cursor first_run() {
    Node node = start();
    mark(node.tracker(), {dir("bucket/a")});
    node.tracker().advance({2});
    const Cursor cursor = node.tracker().cycle(read_all(node.tracker())).next();
    node.stop();
    return cursor;
  }

  // What every loss comes to: another instance that owns up to a gap over everything.
  static void expect_loss(Node& node, const Cursor& old_cursor) {
    EXPECT_FALSE(node.loss().empty());
    const TrackerState state = node.tracker().state();
    EXPECT_NE(state.instance, old_cursor.instance);
    EXPECT_FALSE(state.complete_since_birth);
    CycleRequest request;
    request.oldest = old_cursor.cycle;
    request.instance = old_cursor.instance;
    EXPECT_TRUE(node.tracker().cycle(request).gap);
    EXPECT_TRUE(node.tracker().cycle(read_all(node.tracker())).marks.tree_marks().covers(""))
        << "a gap at the root";
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

TEST_F(RecoveryTest, NewNode_StartsCompleteSinceBirth) {
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  const TrackerState state = node.tracker().state();
  EXPECT_TRUE(state.complete_since_birth);
  EXPECT_FALSE(state.instance.is_none());
  EXPECT_EQ(state.current, CycleId{1});
  EXPECT_TRUE(state.history.empty()) << "no gap";
}

TEST_F(RecoveryTest, TwoNewNodes_HaveDifferentInstances) {
  Node one = start();
  MemoryFileSystem other_files;
  make_directories(other_files);
  Node two(other_files, clock_, node_options(Durability::memory));
  EXPECT_NE(one.tracker().state().instance, two.tracker().state().instance);
}

TEST_F(RecoveryTest, CleanStop_KeepsInstanceWithoutGap) {
  const Cursor cursor = first_run();
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.tracker().state().instance, cursor.instance);
  EXPECT_TRUE(node.tracker().state().complete_since_birth);
  CycleRequest request;
  request.oldest = cursor.cycle;
  request.instance = cursor.instance;
  EXPECT_FALSE(node.tracker().cycle(request).gap);
}

TEST_F(RecoveryTest, CleanStop_KeepsExactlyTheMarks) {
  first_run();
  Node node = start();
  EXPECT_EQ(node.tracker().dirty("bucket/a", {}).latest, CycleId{1});
  EXPECT_FALSE(node.tracker().dirty("bucket/b", {}).latest);
}

TEST_F(RecoveryTest, LossAtHighestRequestCycle_StateCanBeSaved) {
  TrackerState highest = Tracker::born(InstanceId::random(), clock_);
  highest.current = {CycleId::request_max};
  SnapshotStore(files_, node_drives, node_owner, node_data_dir).save(highest, clock_.wall_now());
  for (int run = 0; run < 3; ++run) {
    Node crashed = start();
    crashed.save();
  }
  Node node = start();
  const TrackerState state = node.tracker().state();
  EXPECT_EQ(state.current.value, CycleId::request_max + 4) << "one for each loss";
  EXPECT_TRUE(decode_snapshot(bytes_of(state)));
}

// ancestor 6: a crash loses marks, and the answers still say complete.
TEST_F(RecoveryTest, CrashWithUnsavedMarks_IsALossWithGap) {
  const Cursor cursor = first_run();
  {
    Node crashed = start();
    mark(crashed.tracker(), {dir("bucket/never-saved")});
  }
  files_.crash();
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, CrashAfterSnapshot_IsStillALoss) {
  const Cursor cursor = first_run();
  {
    Node crashed = start();
    crashed.save();
    mark(crashed.tracker(), {dir("bucket/never-saved")});
  }
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, CrashBeforeFirstSave_IsALossNotABirth) {
  Cursor cursor;
  {
    Node crashed = start();
    cursor = crashed.tracker().cycle(read_all(crashed.tracker())).next();
  }
  files_.crash();
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, SnapshotsRemoved_IsALoss) {
  const Cursor cursor = first_run();
  for (const auto& drive : node_drives) ASSERT_TRUE(files_.remove(snapshot_file(drive)));
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, InstanceRecordRemoved_IsALoss) {
  const Cursor cursor = first_run();
  ASSERT_TRUE(files_.remove(record_file));
  Node node = start();
  expect_loss(node, cursor);
}

// Whatever is in the way of the one snapshot that is left, be it only that it cannot be made durable.
TEST_F(RecoveryTest, InstanceRecordRemovedAndOneFailedCall_IsNotABirth) {
  auto options = node_options(Durability::memory);
  options.drives = {node_drives[0]};
  {
    Node(files_, clock_, options).stop();
  }
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

TEST_F(RecoveryTest, UnreadableInstanceRecord_IsALoss) {
  const Cursor cursor = first_run();
  files_.put(record_file, "{");
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, StaleSnapshot_IsALoss) {
  // The drive with the last generation is gone; the other one failed at that save.
  Cursor cursor = first_run();
  {
    Node node = start();
    mark(node.tracker(), {dir("bucket/on-the-other-drive")});
    cursor = node.tracker().cycle(read_all(node.tracker())).next();
    files_.fill(node_drives[1]);
    node.stop();
  }
  ASSERT_TRUE(files_.remove(snapshot_file(node_drives[0])));
  files_.heal(node_drives[1]);
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, SnapshotOfAnotherInstanceWithSameGeneration_IsALoss) {
  const Cursor cursor = first_run();
  TrackerState other = varied_state();
  for (const auto& drive : node_drives)
    files_.put(snapshot_file(drive), encode_snapshot({node_owner, 1, clock_.wall_now(), other}));
  Node node = start();
  expect_loss(node, cursor);
}

// ancestor 2
TEST_F(RecoveryTest, OnlyCorruptSnapshotsWithoutRecord_IsALoss) {
  const Cursor cursor = first_run();
  ASSERT_TRUE(files_.remove(record_file));
  for (const auto& drive : node_drives) files_.put(snapshot_file(drive), "");
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, OneCorruptSnapshotOfTwo_IsNotALoss) {
  const Cursor cursor = first_run();
  files_.put(snapshot_file(node_drives[0]), "");
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.tracker().state().instance, cursor.instance);
}

TEST_F(RecoveryTest, SnapshotOfAnotherNode_IsNotALoss) {
  const Snapshot foreign{{"cluster", "other"}, 9, clock_.wall_now(), varied_state()};
  files_.put(snapshot_file(node_drives[0]), encode_snapshot(foreign));
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.tracker().state().complete_since_birth);
}

TEST_F(RecoveryTest, MinioSnapshot_IsImportedWithGap) {
  files_.put(snapshot_file(node_drives[0]), minio_file(1'677'169'754, 20, {18, 19}));
  Node node = start();
  EXPECT_FALSE(node.loss().empty());
  EXPECT_EQ(node.tracker().state().current, CycleId{21});
  EXPECT_TRUE(node.tracker().cycle(read_all(node.tracker())).marks.tree_marks().covers(""));
}

TEST_F(RecoveryTest, Loss_KeepsSavedMarksAndCycleNumbers) {
  first_run();
  {
    Node crashed = start();
  }
  Node node = start();
  ASSERT_FALSE(node.loss().empty());
  const MarkSet all = node.tracker().cycle(read_all(node.tracker())).marks;
  EXPECT_TRUE(all.filters_may_contain(hash_path("bucket/a")));
  EXPECT_GT(node.tracker().state().current, CycleId{2}) << "numbers go on";
}

// ancestor 11: one full walk by each scanner, once.
TEST_F(RecoveryTest, GapAfterLoss_IsReportedOncePerCursor) {
  const Cursor cursor = first_run();
  {
    Node crashed = start();
  }
  Node node = start();
  CycleRequest request;
  request.oldest = cursor.cycle;
  request.instance = cursor.instance;
  const CycleAnswer first = node.tracker().cycle(request);
  ASSERT_TRUE(first.gap);

  request.oldest = first.next().cycle;
  request.instance = first.next().instance;
  const CycleAnswer second = node.tracker().cycle(request);
  EXPECT_FALSE(second.gap);
  EXPECT_TRUE(second.marks.empty());
}

TEST_F(RecoveryTest, FullHistory_KeepsGapAfterLoss) {
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
  const MarkSet all = node.tracker().cycle(read_all(node.tracker())).marks;
  EXPECT_TRUE(all.tree_marks().covers(""));
  EXPECT_TRUE(all.filters_may_contain(hash_path("bucket/live")));
}

TEST_F(RecoveryTest, GapAfterLoss_SurvivesCleanRestart) {
  first_run();
  {
    Node crashed = start();
  }
  {
    start().stop();
  }
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_FALSE(node.tracker().state().complete_since_birth);
  EXPECT_TRUE(node.tracker().cycle(read_all(node.tracker())).marks.tree_marks().covers(""));
}

// What the last run ignored it did not mark: others may have counted it.
TEST_F(RecoveryTest, NamespaceRulesChanged_IsALoss) {
  auto options = node_options(Durability::disk);
  options.rules = "any";
  {
    Node(files_, clock_, options).stop();
  }
  EXPECT_EQ(Node(files_, clock_, options).loss(), "");
  options.rules = "s3";
  EXPECT_NE(Node(files_, clock_, options).loss(), "");
}

}  // namespace
}  // namespace spoor::tracker
