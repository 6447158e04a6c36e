// kill -9 and SIGTERM while writers mark: no acknowledged mark may be missing afterwards, and none may
// cost a full walk.
#include <cstdlib>
#include <iostream>

#include "tests/faults/fault_fixture.h"

namespace spoor::faults {
namespace {

std::size_t kill_rounds() {
  const char* given = std::getenv("SPOOR_KILL_ROUNDS");
  return given == nullptr ? 12 : std::strtoull(given, nullptr, 10);
}

class KillTest : public FaultTest {};

TEST_F(KillTest, AcknowledgedMarks_AfterKills_AreKept) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  const std::string born = instance();
  EXPECT_EQ(spoor_json({"scan"})["mode"], "full") << "nothing was ever walked";

  const std::size_t rounds = kill_rounds();
  for (std::size_t round = 0; round < rounds && !HasFailure(); ++round) {
    const std::size_t before = load.acknowledged().size();
    load.start(port());
    ASSERT_TRUE(load.wait_for_acknowledged(random.between(1, 400))) << daemon_->log();
    kill_hard();
    load.stop();
    start();
    EXPECT_EQ(instance(), born) << "in round " << round << '\n' << daemon_->log();
    expect_kept(load, before);
  }

  expect_kept(load);  // nor was anything lost rounds later
  EXPECT_EQ(load.refused(), 0U);
  const auto last = spoor_json({"scan"});
  EXPECT_EQ(last["mode"], "incremental") << last;
  std::cout << "[ FIGURES  ] " << rounds << " kills, " << load.acknowledged().size()
            << " acknowledged marks, cycle " << load.newest_cycle() << std::endl;
}

// By SIGTERM, and by SIGKILL while it is frozen.
TEST_F(KillTest, AcknowledgedMarks_AfterStopsOrWhileFrozen_AreKept) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  const std::string born = instance();
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    load.start(port());
    ASSERT_TRUE(load.wait_for_acknowledged(random.between(1, 400))) << daemon_->log();
    if (round % 2 == 0) {
      EXPECT_EQ(stop(), 0) << daemon_->log();
    } else {
      daemon_->freeze();
      kill_hard();
    }
    load.stop();
    start();
    EXPECT_EQ(instance(), born) << daemon_->log();
    expect_kept(load);
  }
}

// As a machine does it that sleeps, or is moved.
TEST_F(KillTest, FrozenDaemon_Resumed_LosesNoMark) {
  SPOOR_RANDOM(random);
  Load load(random);
  start();
  const std::string born = instance();
  load.start(port());
  for (int round = 0; round < 20; ++round) {
    ASSERT_TRUE(load.wait_for_acknowledged(random.between(1, 100))) << daemon_->log();
    daemon_->freeze();
    daemon_->signal(SIGCONT);
  }
  ASSERT_TRUE(load.wait_for_acknowledged(100)) << daemon_->log();
  load.stop();
  EXPECT_EQ(instance(), born);
  expect_kept(load);
  EXPECT_EQ(load.refused(), 0U);
}

}  // namespace
}  // namespace spoor::faults
