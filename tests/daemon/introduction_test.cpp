#include "daemon/membership/introduction.h"

#include <gmock/gmock.h>

#include <boost/asio/co_spawn.hpp>
#include <chrono>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/process/task.h"
#include "tests/daemon/stepped_node.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::daemon {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class IntroductionTest : public SteppedNode {
 protected:
  IntroductionTest() { make(); }

  void TearDown() override {
    introduction_->stop();
    settle();
    EXPECT_THAT(timers_.waiting(), IsEmpty());
  }

  void make() { introduction_.emplace(context_, pool_, *persistence_, "node", clock_, timers_); }

  // As a process that is killed.
  void restart() {
    introduction_.reset();
    persistence_.reset();
    persistence_ = start_persistence();
    make();
  }

  // Empty until it is done.
  using Waited = std::optional<std::string>;

  void wait(Waited& waited) {
    boost::asio::co_spawn(context_, introduction_->wait(),
                          [&waited](const std::exception_ptr& failure, std::string error) {
                            rethrow(failure);
                            waited = std::move(error);
                          });
    poll();
  }

  void take(std::vector<tracker::PeerId> met, bool is_alone = false) {
    boost::asio::co_spawn(context_, introduction_->take(std::move(met), is_alone), rethrow);
    settle();
  }

  std::set<tracker::PeerId> recorded() const {
    std::set<tracker::PeerId> ids;
    for (const auto& [id, run] : tracker::member_marks(*persistence_->tracker().state().current_marks).joined)
      ids.insert(id);
    return ids;
  }

  const tracker::PeerId other_{"b", tracker::InstanceId::random()};
  std::optional<Introduction> introduction_;
};

TEST_F(IntroductionTest, NewDaemon_RefusesWithAReasonAfterSomeSeconds) {
  Waited waited;
  wait(waited);
  pass(seconds(4));
  EXPECT_FALSE(waited);
  pass(seconds(1));
  ASSERT_TRUE(waited);
  EXPECT_THAT(*waited, HasSubstr("this node is new, and no other member of the cluster has recorded it yet"));
  EXPECT_EQ(introduction_->error(), *waited);
}

TEST_F(IntroductionTest, MemberResponds_WaitingMarksAreAcknowledgedAndTheMemberIsRecorded) {
  Waited first;
  Waited second;
  wait(first);
  wait(second);
  take({other_});
  EXPECT_EQ(first, "");
  EXPECT_EQ(second, "");
  EXPECT_EQ(introduction_->error(), "");
  EXPECT_THAT(recorded(), ElementsAre(other_));
  Waited later;
  wait(later);
  EXPECT_EQ(later, "") << "at once";
}

TEST_F(IntroductionTest, NoMemberResponds_IsAloneOnlyIfThereIsNone) {
  take({}, false);
  EXPECT_NE(introduction_->error(), "");
  take({}, true);
  EXPECT_EQ(introduction_->error(), "");
}

TEST_F(IntroductionTest, Alone_IsNotRecordedByAnybody) {
  introduction_->open_alone();
  take({}, true);
  restart();
  take({});
  EXPECT_NE(introduction_->error(), "") << "it has peers now, and they do not respond";
}

TEST_F(IntroductionTest, EachHourAndEachStart_HasALargerRun) {
  const auto run = [&] { return introduction_->self()->run; };
  const std::uint64_t first = run();
  clock_.advance(std::chrono::minutes(59));
  EXPECT_EQ(run(), first);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(run(), first + 1);
  restart();
  EXPECT_GT(run(), first + 1);
}

TEST_F(IntroductionTest, DaemonRestart_StaysIntroduced) {
  restart();
  EXPECT_NE(introduction_->error(), "");
  take({other_});
  restart();
  EXPECT_NE(introduction_->error(), "") << "others may have evicted it";
  take({});
  EXPECT_EQ(introduction_->error(), "") << "no member responds, and it was recorded once";
}

TEST_F(IntroductionTest, NewInstance_IsIntroducedAnew) {
  take({other_});
  files_.remove("/data/instance.json");
  restart();
  EXPECT_NE(introduction_->error(), "");
}

TEST_F(IntroductionTest, DataDirectoryFails_RefusesUntilTheNextRound) {
  files_.fail_below("/data", EIO);
  take({other_});
  EXPECT_NE(introduction_->error(), "");
  files_.heal("/data");
  take({other_});
  EXPECT_EQ(introduction_->error(), "");
}

TEST_F(IntroductionTest, OwnId_IsNotRecorded) {
  EXPECT_EQ(introduction_->record(*introduction_->self()), 0U);
  EXPECT_THAT(recorded(), IsEmpty());
  EXPECT_GT(introduction_->record({other_, 0}), 0U);
  EXPECT_THAT(recorded(), ElementsAre(other_));
}

TEST_F(IntroductionTest, Stopped_EndsTheWaits) {
  Waited waited;
  wait(waited);
  introduction_->stop();
  settle();
  EXPECT_TRUE(waited);
}

}  // namespace
}  // namespace spoor::daemon
