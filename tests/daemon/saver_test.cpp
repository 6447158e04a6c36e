#include "daemon/saver.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <latch>
#include <string>
#include <utility>
#include <vector>

#include "daemon/task.h"
#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class SaverTest : public SteppedNode {
 protected:
  void start() {
    saver_.save_here();
    saver_.start();
    settle();
  }

  void TearDown() override {
    saver_.stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  std::uint64_t generation() const { return saver_.last() ? saver_.last()->generation : 0; }

  Saver saver_{context_, pool_, *persistence_, clock_, timers_, interval};
};

TEST_F(SaverTest, IntervalOver_SavesIfSomethingChanged) {
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

TEST_F(SaverTest, SaveSoon_SavesAtOnceIfSomethingChanged) {
  start();
  const auto first = generation();
  saver_.save_soon();
  settle();
  EXPECT_EQ(generation(), first);
  mark("bucket/a");
  saver_.save_soon();
  settle();
  EXPECT_EQ(generation(), first + 1);
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
}

TEST_F(SaverTest, NoDriveTakesTheSnapshot_RetriesWithGrowingPauses) {
  start();
  fail_drives();
  mark("bucket/a");
  pass(interval);
  EXPECT_EQ(saver_.failures(), 1U);
  for (const int pause : {1, 2, 4, 8, 8}) {
    const auto before = saver_.failures();
    EXPECT_THAT(timers_.waiting(), ElementsAre(seconds(pause)));
    pass(seconds(pause) - milliseconds(1));
    EXPECT_EQ(saver_.failures(), before);
    pass(milliseconds(1));
    EXPECT_EQ(saver_.failures(), before + 1);
  }
  EXPECT_THAT(saver_.trouble(), ElementsAre(HasSubstr("/mnt/1"), HasSubstr("/mnt/2")));
  heal_drives();
  pass(seconds(8));
  EXPECT_TRUE(saver_.last()->durable());
  EXPECT_THAT(saver_.trouble(), IsEmpty());
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
}

TEST_F(SaverTest, OneDriveMissedTheSnapshot_GetsItAfterTheIntervalThoughNothingChanged) {
  files_.fail_below(drives_[1], EIO);
  start();
  ASSERT_TRUE(saver_.last()->durable());
  EXPECT_FALSE(saver_.last()->drives[1].ok);
  EXPECT_THAT(timers_.waiting(), ElementsAre(interval));
  files_.heal(drives_[1]);
  pass(interval);
  EXPECT_TRUE(saver_.last()->drives[1].ok);
}

TEST_F(SaverTest, JournalThatFailed_IsTriedAgainWithoutChanges) {
  start();
  files_.fail_below("/data/journal", EIO);
  mark("bucket/a");
  ASSERT_FALSE(persistence_->commit());
  saver_.mend_journal();
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

TEST_F(SaverTest, LongJournalWhileDrivesFail_DoesNotHastenTheRetry) {
  start();
  fail_drives();
  mark("bucket/a");
  pass(interval);
  const auto failures = saver_.failures();
  saver_.free_journal();
  settle();
  EXPECT_EQ(saver_.failures(), failures);
  heal_drives();
  pass(seconds(1));
  mark("bucket/b");
  const auto before = generation();
  saver_.free_journal();
  settle();
  EXPECT_EQ(generation(), before + 1);
}

// One at a time, and the second holds what was marked during the first.
TEST_F(SaverTest, SaveDuringASave_WaitsForItAndHoldsWhatCameMeanwhile) {
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
    boost::asio::co_spawn(context_, saver_.save(), [&](const std::exception_ptr& failure, const auto& done) {
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
  EXPECT_THAT(saver_.trouble(), ElementsAre(HasSubstr("a save has been under way for 60 s")));
  released.count_down();
  settle();
  EXPECT_THAT(saved, ElementsAre(1U, 2U));
  EXPECT_THAT(saver_.trouble(), IsEmpty());
  const auto bytes = files_.content(tracker::snapshot_file(drives_[0])).value();
  const auto marks = tracker::decode_snapshot(bytes).value().state.current_marks;
  EXPECT_TRUE(marks->filters_may_contain(tracker::hash_path("bucket/meanwhile")));
}

}  // namespace
}  // namespace spoor::daemon
