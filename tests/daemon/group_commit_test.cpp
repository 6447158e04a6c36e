#include "daemon/durability/group_commit.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "daemon/process/task.h"
#include "tests/daemon/stepped_node.h"
#include "tracker/errors.h"

namespace spoor::daemon {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;

class GroupCommitTest : public SteppedNode {
 protected:
  // What came of one wait, once it ended.
  struct Waited {
    std::optional<base::Result<>> result;
    tracker::JournalPosition durable = 0;  // when it ended
  };

  std::shared_ptr<Waited> wait(tracker::JournalPosition position) {
    auto waited = std::make_shared<Waited>();
    boost::asio::co_spawn(context_, wait_into(position, waited), rethrow);
    return waited;
  }

  boost::asio::awaitable<void> wait_into(tracker::JournalPosition position, std::shared_ptr<Waited> waited) {
    waited->result = co_await group_commit_.wait(position);
    waited->durable = persistence_->durable_position();
  }

  // The next write to the journal hangs until it is let go.
  void hang_next_write() {
    begun_ = std::make_unique<std::latch>(1);
    released_ = std::make_unique<std::latch>(1);
    files_.before_append = [this,
                            is_first = std::make_shared<bool>(true)](const std::filesystem::path& file) {
      if (file.extension() != ".log" || !std::exchange(*is_first, false)) return;
      begun_->count_down();
      released_->wait();
    };
  }

  // Until it hangs.
  void poll_until_it_hangs() {
    poll();
    begun_->wait();
    poll();
  }

  void let_go() {
    released_->count_down();
    settle();
  }

  std::unique_ptr<std::latch> begun_;
  std::unique_ptr<std::latch> released_;
  GroupCommit group_commit_{context_, pool_, *persistence_, snapshot_scheduler_, clock_, timers_};
};

TEST_F(GroupCommitTest, Wait_PositionAlreadyDurable_ReturnsWithoutIo) {
  const std::size_t calls = files_.calls();
  const auto waited = wait(persistence_->durable_position());
  poll();
  ASSERT_TRUE(waited->result);
  EXPECT_TRUE(*waited->result);
  EXPECT_EQ(files_.calls(), calls);
}

TEST_F(GroupCommitTest, WaitersBeforeAWrite_ShareOneWriteAndSync) {
  const std::size_t calls = files_.calls();
  const auto one = wait(mark("bucket/a"));
  const auto two = wait(mark("bucket/b"));
  settle();
  for (const auto& waited : {one, two}) {
    ASSERT_TRUE(waited->result);
    EXPECT_TRUE(*waited->result);
  }
  EXPECT_EQ(files_.calls() - calls, 2U) << "one write, one sync";
  EXPECT_TRUE(timers_.waiting().empty()) << "nothing watches any more";
}

// What came during a write is not in it: its end is not the one to wait for.
TEST_F(GroupCommitTest, WaiterDuringAWrite_WaitsForTheNextWrite) {
  hang_next_write();
  const auto position = mark("bucket/a");
  const auto one = wait(position);
  poll_until_it_hangs();
  const auto later = mark("bucket/b");
  ASSERT_GT(later, position);
  const auto two = wait(later);
  poll();
  EXPECT_FALSE(one->result);
  EXPECT_FALSE(two->result);
  let_go();
  ASSERT_TRUE(one->result && two->result);
  EXPECT_TRUE(*one->result);
  EXPECT_TRUE(*two->result);
  EXPECT_GE(one->durable, position);
  EXPECT_GE(two->durable, later);
}

TEST_F(GroupCommitTest, FailedWrite_FailsAllWaitersAndLaterOnes) {
  files_.fail_below("/data/journal", EIO);
  const auto one = wait(mark("bucket/a"));
  const auto two = wait(mark("bucket/b"));
  settle();
  const std::size_t calls = files_.calls();
  const auto after = wait(mark("bucket/c"));
  settle();
  EXPECT_EQ(files_.calls(), calls) << "it is known";
  for (const auto& waited : {one, two, after}) {
    ASSERT_TRUE(waited->result);
    ASSERT_FALSE(*waited->result);
    EXPECT_EQ(waited->result->error().code, tracker::Errc::not_durable);
    EXPECT_THAT(waited->result->error().message, HasSubstr("Input/output error"));
  }
  EXPECT_THAT(group_commit_.health_error(), HasSubstr("Input/output error"));
}

// The saver tries again by itself, and not only after its interval.
TEST_F(GroupCommitTest, FailedWrite_IsRetriedByASnapshotASecondLater) {
  snapshot_scheduler_.start();
  settle();
  files_.fail_below("/data/journal", EIO);
  const auto refused = wait(mark("bucket/a"));
  settle();
  ASSERT_TRUE(refused->result);
  ASSERT_FALSE(*refused->result);
  files_.heal("/data/journal");
  pass(seconds(1));
  EXPECT_EQ(group_commit_.health_error(), "");
  const auto accepted = wait(mark("bucket/b"));
  settle();
  ASSERT_TRUE(accepted->result);
  EXPECT_TRUE(*accepted->result);
  snapshot_scheduler_.stop();
  settle();
}

TEST_F(GroupCommitTest, HangingWrite_FailsWaitersAfterTenSecondsAndRecovers) {
  hang_next_write();
  const auto one = wait(mark("bucket/a"));
  poll_until_it_hangs();
  timers_.advance(seconds(9));
  poll();
  EXPECT_FALSE(one->result);
  EXPECT_EQ(group_commit_.health_error(), "");
  timers_.advance(seconds(1));
  poll();
  ASSERT_TRUE(one->result);
  ASSERT_FALSE(*one->result);
  EXPECT_THAT(one->result->error().message, HasSubstr("has not finished for 10 s"));
  EXPECT_THAT(group_commit_.health_error(), HasSubstr("for 10 s"));
  const auto meanwhile = wait(mark("bucket/b"));
  poll();
  ASSERT_TRUE(meanwhile->result) << "refused at once";
  EXPECT_FALSE(*meanwhile->result);
  let_go();
  EXPECT_EQ(group_commit_.health_error(), "");
  const auto after = wait(mark("bucket/c"));
  settle();
  ASSERT_TRUE(after->result);
  EXPECT_TRUE(*after->result);
}

TEST_F(GroupCommitTest, JournalOverHalfItsLimit_IsFreedByASnapshot) {
  auto with_small_journal = options();
  with_small_journal.journal_bytes_max = 1'000;
  persistence_.reset();
  auto small = tracker::Persistence::start(files_, clock_, std::move(with_small_journal)).value();
  SnapshotScheduler snapshot_scheduler(context_, pool_, *small, clock_, timers_, interval);
  GroupCommit group_commit(context_, pool_, *small, snapshot_scheduler, clock_, timers_);
  snapshot_scheduler.start();
  settle(snapshot_scheduler);
  const tracker::Mark mark{"bucket/" + std::string(200, 'x') + "/" + std::string(200, 'y'),
                           tracker::MarkKind::dir};
  const auto durable = begin(group_commit.wait(small->tracker().mark({&mark, 1}).position));
  settle(snapshot_scheduler);
  ASSERT_TRUE(*durable);
  EXPECT_TRUE(**durable);
  ASSERT_TRUE(snapshot_scheduler.last());
  EXPECT_LT(small->journal_status().bytes, 500U);
  snapshot_scheduler.stop();
  settle(snapshot_scheduler);
}

}  // namespace
}  // namespace spoor::daemon
