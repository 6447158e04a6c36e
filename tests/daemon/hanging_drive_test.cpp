// Drives that hang hold up nothing: neither the others, nor the journal, nor a stop.
#include <gmock/gmock.h>

#include <atomic>
#include <filesystem>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/durability/snapshot_scheduler.h"
#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

tracker::Snapshot decoded(const std::string& bytes) { return tracker::decode_snapshot(bytes).value(); }

class HangingDriveTest : public SavingNode {
 protected:
  // From now on the drive hangs when a snapshot is written to it, or when any file of it is read or written.
  void hang_writes(std::size_t drive) {
    prepare(drive, false);
    hang(drive);
  }
  void hang_all(std::size_t drive) {
    prepare(drive, true);
    hang(drive);
  }

  // In two steps where another drive hangs before: its thread uses what prepare() sets.
  void prepare(std::size_t drive, bool is_for_reads) {
    const auto wait = [path = drives_[drive], is_hanging = is_hanging_[drive],
                       until = released_[drive].get_future().share()](const std::filesystem::path& file) {
      if (*is_hanging && file.native().starts_with(path.native())) until.wait();
    };
    for (auto* const before : {&files_.before_create, &files_.before_read}) {
      if (before == &files_.before_read && !is_for_reads) continue;
      *before = [wait, earlier = *before](const std::filesystem::path& file) {
        if (earlier) earlier(file);
        wait(file);
      };
    }
  }
  void hang(std::size_t drive) {
    ++hanging_;
    *is_hanging_[drive] = true;
  }

  // The drive responds again, if nothing else than time ends its jobs.
  void release(std::size_t drive) {
    --hanging_;
    std::exchange(released_.at(drive), {}).set_value();
    settle();
  }

  auto save() { return run(snapshot_scheduler_.save()); }
  auto check() { return run(snapshot_scheduler_.check_drives()); }

  std::string content(std::size_t drive) const {
    return files_.content(tracker::snapshot_file(drives_[drive])).value_or("");
  }

 private:
  std::vector<std::shared_ptr<std::atomic<bool>>> is_hanging_{std::make_shared<std::atomic<bool>>(false),
                                                              std::make_shared<std::atomic<bool>>(false)};
  std::map<std::size_t, std::promise<void>> released_;
};

TEST_F(HangingDriveTest, CheckDrives_ReportsItAfterTheBound) {
  start();
  hang_all(1);
  const auto found = check();
  EXPECT_FALSE(*found);
  snapshot_scheduler_.stop();  // does not delay the response
  pass(SnapshotScheduler::check_max - milliseconds(1));
  EXPECT_FALSE(*found);
  pass(milliseconds(1));
  ASSERT_TRUE(*found);
  EXPECT_TRUE((**found)[0].ok);
  EXPECT_THAT((**found)[1].error, HasSubstr("does not respond within 5 s"));

  const auto second = check();
  ASSERT_TRUE(*second) << "the drive that hangs is not read again";
  EXPECT_TRUE((**second)[0].ok);
  EXPECT_FALSE((**second)[1].ok);
  release(1);
  const auto third = check();
  ASSERT_TRUE(*third);
  EXPECT_TRUE((**third)[1].ok);
}

// The save decides whether the drive hangs.
TEST_F(HangingDriveTest, CheckDrives_DuringASave_DoesNotWaitForIt) {
  start();
  hang_writes(1);
  const auto saved = save();
  const auto found = check();
  ASSERT_TRUE(*found);
  EXPECT_TRUE((**found)[1].ok);
  EXPECT_FALSE(*saved);
  release(1);
  ASSERT_TRUE(*saved);
  EXPECT_TRUE((*saved)->drives[1].ok);
}

TEST_F(HangingDriveTest, MarkDuringASave_IsSavedAfterTheInterval) {
  start();
  hang_writes(1);
  const auto saved = save();
  mark("bucket/a");
  release(1);
  ASSERT_TRUE(*saved);
  const auto generation = snapshot_scheduler_.last()->generation;
  pass(interval);
  EXPECT_EQ(snapshot_scheduler_.last()->generation, generation + 1);
}

TEST_F(HangingDriveTest, LateDriveRespondsDuringASave_TheNextOneIncludesIt) {
  start();
  prepare(0, false);
  hang_writes(1);
  const auto first = save();
  pass(SnapshotScheduler::response_max);
  ASSERT_TRUE(*first);
  hang(0);
  const auto second = save();
  release(1);
  release(0);
  ASSERT_TRUE(*second);
  EXPECT_FALSE((*second)->drives[1].ok);
  const auto third = save();
  ASSERT_TRUE(*third);
  EXPECT_TRUE((*third)->drives[1].ok) << (*third)->drives[1].error;
}

TEST_F(HangingDriveTest, LateDriveRespondsDuringACheck_TheNextOneReadsIt) {
  start();
  prepare(0, true);
  hang_all(1);
  const auto first = check();
  pass(SnapshotScheduler::check_max);
  ASSERT_TRUE(*first);
  hang(0);
  const auto second = check();
  release(1);
  release(0);
  ASSERT_TRUE(*second);
  const auto third = check();
  ASSERT_TRUE(*third);
  EXPECT_TRUE((**third)[1].ok) << (**third)[1].error;
}

TEST_F(HangingDriveTest, Save_EndsAfterTheBoundAndFreesTheJournal) {
  start();
  hang_writes(1);
  mark("bucket/a");
  ASSERT_TRUE(persistence_->commit());
  const auto journal_bytes = persistence_->journal_status().bytes;
  const auto saved = save();
  EXPECT_EQ(decoded(content(0)).generation, 2U) << "it does not wait for the other drive";
  pass(SnapshotScheduler::response_max - milliseconds(1));
  EXPECT_FALSE(*saved);
  pass(milliseconds(1));
  ASSERT_TRUE(*saved);
  EXPECT_TRUE((*saved)->durable());
  EXPECT_TRUE((*saved)->drives[0].ok);
  EXPECT_FALSE((*saved)->drives[1].ok);
  EXPECT_FALSE((*saved)->drives[1].id.empty());
  EXPECT_THAT((*saved)->drives[1].error, HasSubstr("does not respond within 10 s: the disk hangs"));
  EXPECT_LT(persistence_->journal_status().bytes, journal_bytes);
  EXPECT_THAT(snapshot_scheduler_.health_error(), IsEmpty());
  release(1);
}

TEST_F(HangingDriveTest, FurtherSaves_LeaveItOutUntilItResponds) {
  start();
  hang_writes(1);
  const auto first = save();
  pass(SnapshotScheduler::response_max);
  ASSERT_TRUE(*first);
  for (int i = 0; i < 3; ++i) {
    mark("bucket/" + std::to_string(i));
    const auto saved = save();
    ASSERT_TRUE(*saved) << "it waits for nothing";
    EXPECT_TRUE((*saved)->drives[0].ok);
    EXPECT_THAT((*saved)->drives[1].error, HasSubstr("the disk hangs"));
  }
  release(1);
  EXPECT_EQ(decoded(content(1)).generation, (*first)->generation) << "of all these saves it got one";
  EXPECT_EQ(snapshot_scheduler_.busy_drives(), 0U);
  pass(interval);
  EXPECT_TRUE(snapshot_scheduler_.last()->drives[1].ok);
  EXPECT_EQ(content(1), content(0));
}

// A large snapshot, or a machine under load.
TEST_F(HangingDriveTest, AllDrivesSlow_AreWaitedFor) {
  start();
  hang_writes(0);
  hang_writes(1);
  const auto saved = save();
  pass(seconds(70));
  EXPECT_FALSE(*saved);
  EXPECT_THAT(snapshot_scheduler_.health_error(),
              ElementsAre(HasSubstr("a save has been under way for 70 s")));
  release(0);
  EXPECT_FALSE(*saved);
  pass(SnapshotScheduler::response_max - milliseconds(1));
  release(1);
  ASSERT_TRUE(*saved);
  EXPECT_TRUE((*saved)->drives[0].ok);
  EXPECT_TRUE((*saved)->drives[1].ok);
  EXPECT_THAT(snapshot_scheduler_.health_error(), IsEmpty());
}

TEST_F(HangingDriveTest, OneDriveFailsAndOneHangs_FailedDriveIsTriedAgain) {
  start();
  hang_writes(1);
  files_.fail_below(drives_[0], EIO);
  mark("bucket/a");
  const auto saved = save();
  pass(SnapshotScheduler::save_max - milliseconds(1));
  EXPECT_FALSE(*saved);
  pass(milliseconds(1));
  ASSERT_TRUE(*saved);
  EXPECT_FALSE((*saved)->durable());
  EXPECT_THAT(snapshot_scheduler_.health_error(),
              ElementsAre(HasSubstr("Input/output error"), HasSubstr("the disk hangs")));
  files_.heal(drives_[0]);
  pass(seconds(1));
  EXPECT_TRUE(snapshot_scheduler_.last()->drives[0].ok);
  EXPECT_THAT(snapshot_scheduler_.health_error(), IsEmpty());
  release(1);
}

TEST_F(HangingDriveTest, AcceptDrive_FailsAfterTheBound) {
  start();
  hang_all(1);
  const auto accepted = run(snapshot_scheduler_.accept_drive(drives_[1]));
  pass(SnapshotScheduler::response_max - milliseconds(1));
  EXPECT_FALSE(*accepted);
  pass(milliseconds(1));
  ASSERT_TRUE(*accepted);
  EXPECT_THAT((*accepted)->error().message, HasSubstr("the disk hangs"));
  const auto saved = save();
  ASSERT_TRUE(*saved);
  EXPECT_TRUE((*saved)->drives[0].ok);
  release(1);
}

TEST_F(HangingDriveTest, Stop_RecordsACleanStop) {
  start();
  hang_writes(1);
  mark("bucket/a");
  snapshot_scheduler_.stop();
  const auto last = run(snapshot_scheduler_.save_last());
  pass(SnapshotScheduler::response_max);
  ASSERT_TRUE(*last && **last);
  EXPECT_EQ(snapshot_scheduler_.busy_drives(), 1U);
  poll();
  EXPECT_TRUE(context_.stopped()) << "a drive that hangs is no work of the context";
  const auto files = files_.clone();
  release(1);

  const auto next = tracker::Persistence::start(*files, clock_, options()).value();
  EXPECT_EQ(next->report().loss, "");
  EXPECT_TRUE(next->tracker().dirty("bucket/a", {}).latest);
}

TEST_F(HangingDriveTest, Stop_AllDrivesHang_GivesUpAfterTheBound) {
  start();
  hang_writes(0);
  hang_writes(1);
  const auto saved = save();
  pass(SnapshotScheduler::save_max);
  EXPECT_FALSE(*saved);
  snapshot_scheduler_.stop();
  settle();
  ASSERT_TRUE(*saved);
  EXPECT_FALSE((*saved)->durable());
  const auto last = save();
  ASSERT_TRUE(*last);
  EXPECT_FALSE((*last)->durable());
  release(0);
  release(1);
}

// One at a time, and the second holds what was marked during the first.
TEST_F(HangingDriveTest, SaveDuringASave_WaitsAndIncludesMarksMeanwhile) {
  hang_writes(0);
  hang_writes(1);
  const auto first = save();
  mark("bucket/meanwhile");
  const auto second = save();
  EXPECT_FALSE(*first);
  release(0);
  release(1);
  ASSERT_TRUE(*first);
  ASSERT_TRUE(*second);
  EXPECT_EQ((*first)->generation, 1U);
  EXPECT_EQ((*second)->generation, 2U);
  EXPECT_TRUE(
      decoded(content(0)).state.current_marks->filters_may_contain(tracker::hash_path("bucket/meanwhile")));
}

}  // namespace
}  // namespace spoor::daemon
