// kill -9 of either daemon while the drive changes: the next scan must find every change, and walk the whole
// drive only for a gap that spoor-watch has reported. SPOOR_KILL_ROUNDS sets how often.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "tests/support/sanitizer.h"
#include "tests/watch/load_fixture.h"

namespace spoor::watch {
namespace {

std::size_t kill_rounds() {
  const char* const given = std::getenv("SPOOR_KILL_ROUNDS");
  if (given != nullptr) return std::strtoull(given, nullptr, 10);
  return support::is_sanitized ? 3 : 6;
}

enum class Killed { daemon, watch, both };

class KillTest : public LoadTest {
 protected:
  void SetUp() override { mount(FileSystem::ext4); }

  static Killed choose(support::Random& random) {
    static const std::vector<Killed> all{Killed::daemon, Killed::watch, Killed::both};
    return random.pick(all);
  }

  // Changes go on before, between and after the kill and the start.
  void kill_and_start(Killed killed, support::Random& random) {
    load().start();
    load().wait_for_more(random.between(1, 300));
    if (killed != Killed::watch) node().kill_daemon();
    load().wait_for_more(random.below(200));
    if (killed != Killed::daemon) node().kill_watch();
    load().wait_for_more(random.below(200));
    if (killed != Killed::watch) node().start_daemon();
    if (killed != Killed::daemon) node().start_watch();
    load().wait_for_more(random.between(1, 20));
  }

  void print_figures(std::size_t rounds, std::size_t gaps) {
    std::cout << "[ FIGURES  ] " << rounds << " kills, " << gaps << " gaps, " << load().count()
              << " operations" << std::endl;
  }
};

TEST_F(KillTest, KillsUnderLoad_LoseNoChange) {
  SPOOR_RANDOM(random);
  start_load(random);
  std::size_t gaps = 0;
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::string gap = node().gap_id();
    const Killed killed = choose(random);
    kill_and_start(killed, random);
    expect_nothing_lost();
    EXPECT_EQ(node().gap_id() != gap, killed != Killed::daemon) << "a start without proof is a gap";
    EXPECT_EQ(drive_gaps(last_scan_).empty(), killed == Killed::daemon) << last_scan_;
    gaps += drive_gaps(last_scan_).size();
  }
  print_figures(kill_rounds(), gaps);
}

// The kernel's queue outlives spoor-watch: only a batch that was not acknowledged is lost.
TEST_F(KillTest, KillsUnderLoad_WithStoredDescriptors_LoseNoChange) {
  SPOOR_RANDOM(random);
  start_load(random, &manager_);
  std::size_t gaps = 0;
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const std::string gap = node().gap_id();
    kill_and_start(choose(random), random);
    expect_nothing_lost();
    EXPECT_EQ(drive_gaps(last_scan_).empty(), node().gap_id() == gap) << last_scan_ << node().watch().log();
    gaps += drive_gaps(last_scan_).size();
  }
  print_figures(kill_rounds(), gaps);
}

// Stops with SIGTERM acknowledge what was read: with the queue kept, none is a gap.
TEST_F(KillTest, StopsUnderLoad_WithStoredDescriptors_AreNoGaps) {
  SPOOR_RANDOM(random);
  start_load(random, &manager_);
  const std::string gap = node().gap_id();
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    load().start();
    load().wait_for_more(random.between(1, 300));
    EXPECT_EQ(node().stop_watch(), 0) << node().watch().log();
    load().wait_for_more(random.below(200));
    node().start_watch();
    expect_nothing_lost();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_ << node().watch().log();
  }
  EXPECT_EQ(node().gap_id(), gap);
}

// The queue has no bound of its own.
TEST_F(KillTest, FrozenWatch_Resumed_FindsEveryChangeWithoutGap) {
  SPOOR_RANDOM(random);
  start_load(random);
  node().watch().freeze();
  load().start();
  load().wait_for_more(3000);
  node().watch().signal(SIGCONT);
  expect_nothing_lost();
  EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
}

// A scan may begin between a change and its event, its mark, or the acknowledgement.
TEST_F(KillTest, ScansUnderLoad_LeaveNoChangeToNoScan) {
  SPOOR_RANDOM(random);
  start_load(random);
  for (std::size_t round = 0; round < kill_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    load().start();
    for (std::uint64_t count = random.between(1, 5); count > 0; --count) {
      load().wait_for_more(random.below(100));
      node().scan_while_changing();
    }
    expect_nothing_lost();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
  }
}

}  // namespace
}  // namespace spoor::watch
