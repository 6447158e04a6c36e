// A node that stops, crashes and loses things between its runs, on a file system in memory.

#include "tracker/recovery.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/fakes/memory_file_system.h"
#include "tests/tracker/minio_samples.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;

const std::filesystem::path data_dir = "/data";
const std::filesystem::path record_file = data_dir / "instance.json";
const std::vector<std::filesystem::path> drives{"/mnt/1", "/mnt/2"};
const NodeIdentity owner{"cluster", "node"};

// What the daemon does with recovery and a store, in its shortest form.
class Node {
 public:
  Node(MemoryFileSystem& files, const base::Clock& clock)
      : files_(files), clock_(clock), store_(files, drives, owner) {
    const auto record = read_instance_record(files_, data_dir);
    Recovery recovery = recover(record, store_.load(), clock_, "");
    loss_ = recovery.loss;
    tracker_ = std::make_unique<Tracker>(small_options(), clock_, std::move(recovery.state));
    EXPECT_TRUE(write_instance_record(files_, data_dir, {tracker_->state().instance, std::nullopt}));
  }

  Tracker& tracker() { return *tracker_; }
  const std::string& loss() const { return loss_; }
  SavedSnapshot save() { return store_.save(tracker_->state(), clock_.wall_now()); }
  void stop() {
    const SavedSnapshot saved = save();
    EXPECT_TRUE(saved.durable());
    EXPECT_TRUE(write_instance_record(files_, data_dir, {tracker_->state().instance, saved.generation}));
  }

 private:
  MemoryFileSystem& files_;
  const base::Clock& clock_;
  SnapshotStore store_;
  std::string loss_;
  std::unique_ptr<Tracker> tracker_;
};

class RecoveryTest : public ::testing::Test {
 protected:
  RecoveryTest() {
    files_.make_directory(data_dir);
    for (const auto& drive : drives) files_.make_directory(drive);
  }

  Node start() { return {files_, clock_}; }

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

TEST_F(RecoveryTest, ANodeThatNeverWasIsBornComplete) {
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  const TrackerState state = node.tracker().state();
  EXPECT_TRUE(state.complete_since_birth);
  EXPECT_FALSE(state.instance.is_none());
  EXPECT_EQ(state.current, CycleId{1});
  EXPECT_TRUE(state.history.empty()) << "no gap";
}

TEST_F(RecoveryTest, TwoBirthsAreTwoInstances) {
  Node one = start();
  MemoryFileSystem other_files;
  other_files.make_directory(data_dir);
  Node two(other_files, clock_);
  EXPECT_NE(one.tracker().state().instance, two.tracker().state().instance);
}

TEST_F(RecoveryTest, AfterACleanStopTheInstanceGoesOn) {
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

TEST_F(RecoveryTest, AfterACleanStopAllMarksAreFoundAndNothingElse) {
  first_run();
  Node node = start();
  EXPECT_EQ(node.tracker().dirty("bucket/a", {}).latest, CycleId{1});
  EXPECT_FALSE(node.tracker().dirty("bucket/b", {}).latest);
}

TEST_F(RecoveryTest, ALossInTheHighestCycleThatCanBeAskedForCanBeSaved) {
  TrackerState highest = Tracker::born(InstanceId::random(), clock_);
  highest.current = {CycleId::request_max};
  SnapshotStore(files_, drives, owner).save(highest, clock_.wall_now());
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
TEST_F(RecoveryTest, AfterACrashEverythingMayHaveChanged) {
  const Cursor cursor = first_run();
  {
    Node crashed = start();
    mark(crashed.tracker(), {dir("bucket/never-saved")});
  }
  files_.crash();
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, ASnapshotSavedBeforeTheCrashDoesNotMakeUpForIt) {
  const Cursor cursor = first_run();
  {
    Node crashed = start();
    crashed.save();
    mark(crashed.tracker(), {dir("bucket/never-saved")});
  }
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, ACrashBeforeTheFirstSaveIsALossNotABirth) {
  Cursor cursor;
  {
    Node crashed = start();
    cursor = crashed.tracker().cycle(read_all(crashed.tracker())).next();
  }
  files_.crash();
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, ALostSnapshotIsALoss) {
  const Cursor cursor = first_run();
  for (const auto& drive : drives) ASSERT_TRUE(files_.remove(snapshot_file(drive)));
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, AWipedDataDirectoryIsALoss) {
  const Cursor cursor = first_run();
  ASSERT_TRUE(files_.remove(record_file));
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, ARecordThatCannotBeReadIsALoss) {
  const Cursor cursor = first_run();
  files_.put(record_file, "{");
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, AStaleSnapshotIsALoss) {
  // The drive with the last generation is gone; the other one failed at that save.
  Cursor cursor = first_run();
  {
    Node node = start();
    mark(node.tracker(), {dir("bucket/on-the-other-drive")});
    cursor = node.tracker().cycle(read_all(node.tracker())).next();
    files_.fill(drives[1]);
    node.stop();
  }
  ASSERT_TRUE(files_.remove(snapshot_file(drives[0])));
  files_.heal(drives[1]);
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, ASnapshotOfAnotherRunWithTheSameGenerationIsALoss) {
  const Cursor cursor = first_run();
  TrackerState other = varied_state();
  for (const auto& drive : drives)
    files_.put(snapshot_file(drive), encode_snapshot({owner, 1, clock_.wall_now(), other}));
  Node node = start();
  expect_loss(node, cursor);
}

// ancestor 2
TEST_F(RecoveryTest, OnlyCorruptSnapshotsAreALossEvenWithoutARecord) {
  const Cursor cursor = first_run();
  ASSERT_TRUE(files_.remove(record_file));
  for (const auto& drive : drives) files_.put(snapshot_file(drive), "");
  Node node = start();
  expect_loss(node, cursor);
}

TEST_F(RecoveryTest, OneCorruptSnapshotOfTwoIsNoLoss) {
  const Cursor cursor = first_run();
  files_.put(snapshot_file(drives[0]), "");
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_EQ(node.tracker().state().instance, cursor.instance);
}

TEST_F(RecoveryTest, ADriveOfAnotherNodeIsNoLossOfThisOne) {
  const Snapshot foreign{{"cluster", "other"}, 9, clock_.wall_now(), varied_state()};
  files_.put(snapshot_file(drives[0]), encode_snapshot(foreign));
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.tracker().state().complete_since_birth);
}

TEST_F(RecoveryTest, AFileOfMiniosIsTakenOverWithAGap) {
  files_.put(snapshot_file(drives[0]), minio_file(1'677'169'754, 20, {18, 19}));
  Node node = start();
  EXPECT_FALSE(node.loss().empty());
  EXPECT_EQ(node.tracker().state().current, CycleId{21});
  EXPECT_TRUE(node.tracker().cycle(read_all(node.tracker())).marks.tree_marks().covers(""));
}

TEST_F(RecoveryTest, WhatWasSavedIsKeptThroughALoss) {
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
TEST_F(RecoveryTest, TheGapIsMetOnceAndNotAgain) {
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

TEST_F(RecoveryTest, AFullHistoryDoesNotPushTheGapOut) {
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

TEST_F(RecoveryTest, AGapSurvivesTheNextCleanRestart) {
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
TEST(RecoveryRulesTest, AChangeOfWhatIsIgnoredIsALoss) {
  const fakes::ManualClock clock;
  LoadedSnapshot loaded;
  loaded.newest = Snapshot{{"c", "n"}, 7, {}, Tracker::born(InstanceId::random(), clock)};
  const InstanceRecord record{loaded.newest->state.instance, 7, "any"};
  EXPECT_EQ(recover(std::optional(record), loaded, clock, "any").loss, "");
  EXPECT_NE(recover(std::optional(record), loaded, clock, "s3").loss, "");
}

}  // namespace
}  // namespace spoor::tracker
