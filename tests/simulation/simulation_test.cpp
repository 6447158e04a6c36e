#include <gtest/gtest.h>

#include "tests/simulation/world.h"

namespace spoor::simulation {
namespace {

constexpr std::size_t steps = 10'000;

// Whether the bug is detected in so many of the first seeds.
bool is_noticed(Bug bug, std::uint64_t seeds, int times = 2) {
  for (std::uint64_t seed = 1; seed <= seeds && times > 0; ++seed) {
    if (run(random_script(seed, steps), bug).violation) --times;
  }
  return times == 0;
}

TEST(SimulationTest, RandomScripts_MissNoMarkAndNeedNoExtraFullWalk) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Outcome outcome = run(random_script(seed, steps));
    ASSERT_FALSE(outcome.violation) << "seed " << seed << ": " << *outcome.violation;
    EXPECT_GT(outcome.figures.marks, 100U);
    EXPECT_GT(outcome.figures.scans, 5U);
  }
}

// #15: the peer claims other nodes' names, instances and cycles; certificates of the members reveal this.
TEST(SimulationTest, HostilePeer_HidesNoMarkOfOthers) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Script script = random_script(seed, steps);
    script.setup.hostile = true;
    const Outcome outcome = run(script);
    ASSERT_FALSE(outcome.violation) << "seed " << seed << ": " << *outcome.violation;
    EXPECT_GT(outcome.figures.marks, 100U);
    EXPECT_GT(outcome.figures.scans, 5U);
  }
}

// Each bug is a one-line change.
TEST(SimulationTest, CursorStoredBeforeWalkBug_IsDetected) {
  EXPECT_TRUE(is_noticed(Bug::cursor_before_walk, 8));
}
TEST(SimulationTest, ChainSplitOverTwoCyclesBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::split_chain, 8)); }
TEST(SimulationTest, LiveCycleExcludedBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::live_excluded, 8)); }
TEST(SimulationTest, JoinUnrecordedBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::join_unrecorded, 16)); }
TEST(SimulationTest, AcknowledgesEarlyBug_IsDetected) {
  EXPECT_TRUE(is_noticed(Bug::acknowledges_early, 16));
}
TEST(SimulationTest, SpanSkippedBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::span_skipped, 8)); }
TEST(SimulationTest, RetiresOpenBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::retires_open, 48)); }
TEST(SimulationTest, RecordsLateBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::records_late, 80, 1)); }
TEST(SimulationTest, AdoptsTooLittleBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::adopts_too_little, 48)); }
TEST(SimulationTest, AdoptsInMemoryBug_IsDetected) { EXPECT_TRUE(is_noticed(Bug::adopts_in_memory, 80, 1)); }

TEST(ScriptTest, ToTextAndParse_KeepsScript) {
  const Script script = random_script(7, 500);
  const auto again = parse_script(to_text(script));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->setup, script.setup);
  EXPECT_EQ(again->actions, script.actions);
  EXPECT_FALSE(parse_script("setup 0 1 1 1 1"));
  EXPECT_FALSE(parse_script("deliver 1 2"));
  EXPECT_FALSE(parse_script("nothing 1 2 3"));
}

TEST(ScriptTest, SameSeed_LongerScriptBeginsWithShorterOne) {
  const Script shorter = random_script(7, 10);
  Script longer = random_script(7, 20);
  longer.actions.resize(10);
  EXPECT_EQ(longer.actions, shorter.actions);
}

TEST(SimulationTest, FailingScript_ShrinksAndStillFails) {
  const Script script = random_script(1, steps);
  const Script shorter = shrink(script, Bug::live_excluded);
  EXPECT_TRUE(run(shorter, Bug::live_excluded).violation);
  EXPECT_LT(shorter.actions.size(), 400U);
  EXPECT_FALSE(run(shorter).violation) << "without the bug there is no violation";
}

}  // namespace
}  // namespace spoor::simulation
