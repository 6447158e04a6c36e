#include "daemon/durability/snapshot_scheduler.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "daemon/process/task.h"
#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SnapshotSchedulerTest : public SteppedNode {
 protected:
  void start() {
    snapshot_scheduler_.save_here();
    snapshot_scheduler_.start();
    settle();
  }

  void TearDown() override {
    snapshot_scheduler_.stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  std::uint64_t generation() const {
    return snapshot_scheduler_.last() ? snapshot_scheduler_.last()->generation : 0;
  }

  SnapshotScheduler snapshot_scheduler_{context_, pool_, *persistence_, clock_, timers_, interval};
};

TEST_F(SnapshotSchedulerTest, IntervalElapsed_SavesASnapshotIfSomethingChanged) {
  start();
  const auto first = generation();
  pass(interval);
  EXPECT_EQ(generation(), first) << "nothing changed";
  mark("bucket/a");
  pass(interval - seconds(1));
  EXPECT_EQ(generation(), first);
  pass(seconds(1));
  EXPECT_EQ(generation(), first + 1);
  pass(interval);
  EXPECT_EQ(generation(), first + 1);
}

TEST_F(SnapshotSchedulerTest, SaveSoon_SavesAtOnceIfSomethingChanged) {
  start();
  const auto first = generation();
  snapshot_scheduler_.save_soon();
  settle();
  EXPECT_EQ(generation(), first);
  mark("bucket/a");
  snapshot_scheduler_.save_soon();
  settle();
  EXPECT_EQ(generation(), first + 1);
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
}

TEST_F(SnapshotSchedulerTest, SnapshotFailsOnAllDrives_RetriesWithBackoff) {
  start();
  fail_drives();
  mark("bucket/a");
  pass(interval);
  EXPECT_EQ(snapshot_scheduler_.failures(), 1U);
  for (const int pause : {1, 2, 4, 8, 8}) {
    const auto before = snapshot_scheduler_.failures();
    EXPECT_THAT(timers_.waiting(), ElementsAre(seconds(pause)));
    pass(seconds(pause) - milliseconds(1));
    EXPECT_EQ(snapshot_scheduler_.failures(), before);
    pass(milliseconds(1));
    EXPECT_EQ(snapshot_scheduler_.failures(), before + 1);
  }
  EXPECT_THAT(snapshot_scheduler_.health_error(), ElementsAre(HasSubstr("/mnt/1"), HasSubstr("/mnt/2")));
  heal_drives();
  pass(seconds(8));
  EXPECT_TRUE(snapshot_scheduler_.last()->durable());
  EXPECT_THAT(snapshot_scheduler_.health_error(), IsEmpty());
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
}

TEST_F(SnapshotSchedulerTest, SnapshotFailsOnOneDrive_IsRetriedAfterTheInterval) {
  files_.fail_below(drives_[1], EIO);
  start();
  ASSERT_TRUE(snapshot_scheduler_.last()->durable());
  EXPECT_FALSE(snapshot_scheduler_.last()->drives[1].ok);
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
  files_.heal(drives_[1]);
  pass(interval);
  EXPECT_TRUE(snapshot_scheduler_.last()->drives[1].ok);
}

TEST_F(SnapshotSchedulerTest, FailedJournal_IsRetriedWithoutChanges) {
  start();
  files_.fail_below("/data/journal", EIO);
  mark("bucket/a");
  ASSERT_FALSE(persistence_->commit());
  snapshot_scheduler_.retry_journal();
  settle();
  EXPECT_THAT(timers_.waiting(), ElementsAre(seconds(1)));
  pass(seconds(1));
  EXPECT_NE(persistence_->journal_status().error, "");
  EXPECT_THAT(timers_.waiting(), ElementsAre(seconds(2)));
  files_.heal("/data/journal");
  pass(seconds(2));
  EXPECT_EQ(persistence_->journal_status().error, "");
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
}

TEST_F(SnapshotSchedulerTest, LongJournal_DrivesFail_DoesNotHastenTheRetry) {
  start();
  fail_drives();
  mark("bucket/a");
  pass(interval);
  const auto failures = snapshot_scheduler_.failures();
  snapshot_scheduler_.free_journal();
  settle();
  EXPECT_EQ(snapshot_scheduler_.failures(), failures);
  heal_drives();
  pass(seconds(1));
  mark("bucket/b");
  const auto before = generation();
  snapshot_scheduler_.free_journal();
  settle();
  EXPECT_EQ(generation(), before + 1);
}

TEST_F(SnapshotSchedulerTest, CheckDrives_DiskHangs_NamesItAfterTheBound) {
  start();
  std::latch begun(1);
  std::latch released(1);
  bool is_first = true;
  files_.before_read = [&](const std::filesystem::path& file) {
    if (!file.native().starts_with(drives_[1].native()) || !std::exchange(is_first, false)) return;
    begun.count_down();
    released.wait();
  };
  std::vector<std::vector<tracker::DriveState>> found;
  const auto check = [&] {
    boost::asio::co_spawn(context_, snapshot_scheduler_.check_drives(),
                          [&](const std::exception_ptr& failure, const auto& states) {
                            rethrow(failure);
                            found.push_back(states);
                          });
    poll();
  };
  check();
  begun.wait();
  snapshot_scheduler_.stop();  // does not delay the response
  timers_.advance(SnapshotScheduler::check_max - milliseconds(1));
  poll();
  EXPECT_THAT(found, IsEmpty());
  timers_.advance(milliseconds(1));
  poll();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_TRUE(found[0].at(0).ok);
  EXPECT_THAT(found[0].at(1).error, HasSubstr("does not respond within 5 s"));
  check();
  EXPECT_EQ(found.size(), 2U) << "a check that is late delays no further request";
  released.count_down();
  settle();
  check();
  settle();
  ASSERT_EQ(found.size(), 3U);
  EXPECT_TRUE(found[2].at(1).ok);
}

// One at a time, and the second holds what was marked during the first.
TEST_F(SnapshotSchedulerTest, SaveDuringASave_WaitsAndIncludesMarksMeanwhile) {
  std::latch begun(1);
  std::latch released(1);
  bool is_first = true;
  files_.before_create = [&](const std::filesystem::path& file) {
    if (file.filename() != ".tracker.bin.tmp" || !std::exchange(is_first, false)) return;
    begun.count_down();
    released.wait();
  };
  std::vector<std::uint64_t> saved;
  const auto save = [&] {
    boost::asio::co_spawn(context_, snapshot_scheduler_.save(),
                          [&](const std::exception_ptr& failure, const auto& done) {
                            rethrow(failure);
                            saved.push_back(done.generation);
                          });
  };
  save();
  poll();
  begun.wait();
  mark("bucket/meanwhile");
  save();
  poll();
  EXPECT_THAT(saved, IsEmpty());
  timers_.advance(minutes(1));
  EXPECT_THAT(snapshot_scheduler_.health_error(),
              ElementsAre(HasSubstr("a save has been under way for 60 s")));
  released.count_down();
  settle();
  EXPECT_THAT(saved, ElementsAre(1U, 2U));
  EXPECT_THAT(snapshot_scheduler_.health_error(), IsEmpty());
  const auto bytes = files_.content(tracker::snapshot_file(drives_[0])).value();
  const auto marks = tracker::decode_snapshot(bytes).value().state.current_marks;
  EXPECT_TRUE(marks->filters_may_contain(tracker::hash_path("bucket/meanwhile")));
}

}  // namespace
}  // namespace spoor::daemon
