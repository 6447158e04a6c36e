#include "daemon/durability/snapshot_scheduler.h"

#include <gmock/gmock.h>

#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SnapshotSchedulerTest : public SavingNode {
 protected:
  std::uint64_t generation() const {
    return snapshot_scheduler_.last() ? snapshot_scheduler_.last()->generation : 0;
  }
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

}  // namespace
}  // namespace spoor::daemon
