#include "daemon/membership/introduction.h"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/daemon/stepped_node.h"

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

  void make() { introduction_.emplace(context_, pool_, *persistence_, "node", known_for, clock_, timers_); }

  // As a process that is killed.
  void restart() {
    introduction_.reset();
    persistence_.reset();
    persistence_ = start_persistence();
    make();
  }

  // Empty until it is done.
  std::shared_ptr<std::optional<std::string>> wait() {
    const auto waited = begin(introduction_->wait());
    poll();
    return waited;
  }

  // As if a source lists this node.
  void take(std::vector<tracker::PeerId> met, bool is_alone = false) {
    take_round(
        {.began_at = introduction_->now(), .met = std::move(met), .is_alone = is_alone, .is_listed = true});
  }

  void take_round(Introduction::Round round) {
    introduction_->begin_round();
    run(introduction_->take(std::move(round)));
  }

  // As with other peers: nobody responds, and no source lists this node.
  void take_nothing() { take_round({.began_at = introduction_->now()}); }

  static constexpr std::chrono::hours known_for{12};

  const tracker::PeerId other_{"b", tracker::InstanceId::random()};
  std::optional<Introduction> introduction_;
};

TEST_F(IntroductionTest, NewDaemon_RefusesWithAReasonAfterSomeSeconds) {
  const auto waited = wait();
  pass(seconds(4));
  EXPECT_FALSE(*waited);
  pass(seconds(1));
  ASSERT_TRUE(*waited);
  EXPECT_THAT(**waited,
              HasSubstr("this node is new, and no other member of the cluster has recorded it yet"));
  EXPECT_EQ(introduction_->error(), **waited);
}

TEST_F(IntroductionTest, MemberResponds_WaitingMarksAreAcknowledgedAndTheMemberIsRecorded) {
  const auto first = wait();
  const auto second = wait();
  take({other_});
  EXPECT_EQ(*first, "");
  EXPECT_EQ(*second, "");
  EXPECT_EQ(introduction_->error(), "");
  EXPECT_THAT(recorded(), ElementsAre(other_));
  EXPECT_EQ(*wait(), "") << "at once";
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
  take({other_});
  const auto run = [&] {
    introduction_->begin_round();
    return introduction_->self()->run;
  };
  const std::uint64_t first = run();
  for (int minute = 0; minute < 59; ++minute) {
    clock_.advance(std::chrono::minutes(1));
    take({other_});
  }
  EXPECT_EQ(run(), first);
  clock_.advance(std::chrono::minutes(1));
  EXPECT_EQ(run(), first + 1);
  introduction_->set_known_for(std::chrono::minutes(30));
  for (int minute = 0; minute < 15; ++minute) {
    clock_.advance(std::chrono::minutes(1));
    take({other_});
  }
  EXPECT_EQ(run(), first + 2) << "half of that";
  introduction_->set_known_for(known_for);
  EXPECT_EQ(run(), first + 2);
  clock_.set_wall(clock_.wall_now() + known_for);
  EXPECT_EQ(run(), first + 3) << "the machine was asleep, and scans may have forgotten it";
  restart();
  EXPECT_GT(run(), first + 3);
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

TEST_F(IntroductionTest, NotKnownForSoLong_RefusesUntilItIs) {
  take({other_});
  pass(known_for - seconds(1));
  take_nothing();
  EXPECT_EQ(introduction_->error(), "");
  EXPECT_TRUE(introduction_->is_open());
  pass(seconds(1));
  EXPECT_FALSE(introduction_->is_open()) << "whether a round ended or not";
  EXPECT_THAT(introduction_->error(), HasSubstr("scans of others may no longer expect it"));
  EXPECT_EQ(introduction_->health_error(), "") << "the DNS may list nodes only once they are ready";
  take_nothing();
  EXPECT_FALSE(introduction_->is_open());
  const auto waited = wait();
  take({other_});
  EXPECT_EQ(*waited, "") << "a source lists it";
  pass(known_for);
  EXPECT_FALSE(introduction_->is_open());
}

// They are cut off together: each records the other, and no scan of the others reads them.
TEST_F(IntroductionTest, OnlySomeOthersRecordIt_IsNotKnownByThat) {
  take({other_});
  pass(known_for);
  take_round({.began_at = introduction_->now(), .met = {other_}});
  EXPECT_FALSE(introduction_->is_open());
  take_round({.began_at = introduction_->now(), .met = {other_}, .are_all = true});
  EXPECT_TRUE(introduction_->is_open());
  pass(known_for);
  take_round({.began_at = introduction_->now(), .are_all = true});
  EXPECT_FALSE(introduction_->is_open()) << "there is none";
}

// Scans may have forgotten it: they learn that it is back by a record alone.
TEST_F(IntroductionTest, KnownAgain_IsRecordedAnewFirst) {
  take({other_});
  const auto run = introduction_->self()->run;
  pass(known_for);
  introduction_->know(introduction_->now());
  EXPECT_FALSE(introduction_->is_open());
  take({});
  EXPECT_FALSE(introduction_->is_open()) << "nobody responds";
  take({other_});
  EXPECT_TRUE(introduction_->is_open());
  EXPECT_GT(introduction_->self()->run, run);
}

// Scans that came before and after would count its silence all the time.
TEST_F(IntroductionTest, ListedAgainForAMoment_ExtendsNothingWithoutARecord) {
  take({other_});
  pass(known_for - seconds(1));
  take({});
  pass(seconds(1));
  EXPECT_FALSE(introduction_->is_open());
}

// etcd was away, and did not say who has joined.
TEST_F(IntroductionTest, AloneByAnOldList_AsksAnewOnceItIsKnownAgain) {
  introduction_->know(introduction_->now());
  take_round({.began_at = introduction_->now(), .is_alone = true});
  EXPECT_TRUE(introduction_->is_open());
  pass(known_for);
  take_round({.began_at = introduction_->now(), .is_alone = true});
  EXPECT_FALSE(introduction_->is_open());
  introduction_->know(introduction_->now());
  EXPECT_FALSE(introduction_->is_open());
  take_round({.began_at = introduction_->now(), .is_alone = true});
  EXPECT_TRUE(introduction_->is_open());
}

TEST_F(IntroductionTest, KnownAgainDuringARound_IsRecordedByTheNextOne) {
  take({other_});
  introduction_->begin_round();
  const auto began_at = introduction_->now();
  clock_.set_wall(clock_.wall_now() + known_for);  // the machine was asleep
  introduction_->know(introduction_->now());
  run(introduction_->take({.began_at = began_at, .met = {other_}}));
  EXPECT_FALSE(introduction_->is_open()) << "that round had the number of the last one";
  take({other_});
  EXPECT_TRUE(introduction_->is_open());
}

TEST_F(IntroductionTest, SourceConfirmsAfterTheFirstRound_IsOpenAtOnce) {
  take_round({.began_at = introduction_->now(), .met = {other_}});
  EXPECT_FALSE(introduction_->is_open());
  introduction_->know(introduction_->now());
  EXPECT_TRUE(introduction_->is_open());
}

TEST_F(IntroductionTest, SourceConfirmsBetweenRounds_IsNotedByTheNextOne) {
  take({other_});
  pass(known_for - seconds(1));
  take_round({.began_at = introduction_->now(), .met = {other_}});
  introduction_->know(introduction_->now());
  take_nothing();
  pass(seconds(2));
  restart();
  take_nothing();
  EXPECT_TRUE(introduction_->is_open());
}

TEST_F(IntroductionTest, ClockIsSet_TheLongerTimeCounts) {
  take({other_});
  clock_.set_wall(clock_.wall_now() + known_for);
  EXPECT_FALSE(introduction_->is_open()) << "or the machine was asleep";
  take({other_});
  clock_.set_wall(clock_.wall_now() - std::chrono::hours(1'000));
  EXPECT_TRUE(introduction_->is_open());
  clock_.advance(known_for);
  EXPECT_FALSE(introduction_->is_open());
}

TEST_F(IntroductionTest, DaemonRestart_KnowsWhenItWasKnownLast) {
  take({other_});
  clock_.advance(known_for - seconds(1));
  restart();
  take_nothing();
  EXPECT_TRUE(introduction_->is_open());
  clock_.advance(seconds(1));
  restart();
  take_nothing();
  EXPECT_FALSE(introduction_->is_open());
  EXPECT_THAT(introduction_->error(), HasSubstr("scans of others may no longer expect it"));
  take({other_});
  EXPECT_TRUE(introduction_->is_open());
}

TEST_F(IntroductionTest, MachineReboot_GoesByTheTimeOfDay) {
  take({other_});
  clock_.advance(known_for - seconds(1));
  boot_id_ = "another boot";
  restart();
  take_nothing();
  EXPECT_TRUE(introduction_->is_open());
  clock_.advance(seconds(1));
  EXPECT_FALSE(introduction_->is_open());
  take({other_});
  clock_.set_wall(clock_.wall_now() - seconds(1));
  boot_id_ = "a third boot";
  restart();
  take_nothing();
  EXPECT_FALSE(introduction_->is_open()) << "the clock was set back, nobody knows by how much";
}

TEST_F(IntroductionTest, WhenItWasKnown_IsWrittenNowAndThenOnly) {
  take({other_});
  const auto first = persistence_->known_at();
  ASSERT_TRUE(first);
  clock_.advance(std::chrono::minutes(90) - seconds(1));
  take({other_});
  EXPECT_EQ(persistence_->known_at(), first);
  clock_.advance(seconds(1));
  take({other_});
  EXPECT_EQ(persistence_->known_at(), introduction_->now());
}

TEST_F(IntroductionTest, OwnId_IsNotRecorded) {
  EXPECT_EQ(introduction_->record(*introduction_->self()), 0U);
  EXPECT_THAT(recorded(), IsEmpty());
  EXPECT_GT(introduction_->record({other_, 0}), 0U);
  EXPECT_THAT(recorded(), ElementsAre(other_));
}

TEST_F(IntroductionTest, Stopped_EndsTheWaits) {
  const auto waited = wait();
  introduction_->stop();
  settle();
  EXPECT_TRUE(*waited);
}

}  // namespace
}  // namespace spoor::daemon
