#include "tracker/cycles/tracker.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/largest_allocation.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();

class TrackerTest : public ::testing::Test {
 protected:
  // What a scanner that holds this cursor asks; it opens `current` where that is ahead.
  static CycleRequest from(const Cursor& cursor, std::uint64_t current = 0) {
    CycleRequest request;
    request.current = {current};
    request.oldest = cursor.cycle;
    request.instance = cursor.instance;
    return request;
  }
  Cursor at(std::uint64_t cycle) const { return {instance_, {cycle}}; }

  MarkSet everything() { return tracker_.cycle(read_all(tracker_)).marks; }

  // Closes `count` cycles with one mark in each: `bucket/<number>`.
  void close_cycles(std::uint64_t count) {
    for (; count > 0; --count) {
      const CycleId current = tracker_.state().current;
      mark(tracker_, {dir("bucket/" + std::to_string(current.value))});
      tracker_.advance(next(current));
    }
  }

  const InstanceId instance_ = instance_of(1);
  fakes::ManualClock clock_;
  Tracker tracker_{small_options(), clock_, Tracker::born(instance_, clock_)};
};

// --- marks ---

TEST_F(TrackerTest, DirMark_MarksPathAndEveryPrefix) {
  mark(tracker_, {dir("bucket/a/b")});
  for (const std::string_view path : {"bucket", "bucket/a", "bucket/a/b"})
    EXPECT_TRUE(contains(everything(), path)) << path;
  for (const std::string_view path : {"a", "bucket/b", "bucket/a/b/c"})
    EXPECT_FALSE(contains(everything(), path)) << path;
}

// ancestor 23: leaves fill the filter.
TEST_F(TrackerTest, FileMark_MarksParentsOnly) {
  mark(tracker_, {file("bucket/a/b")});
  for (const std::string_view path : {"bucket", "bucket/a"})
    EXPECT_TRUE(contains(everything(), path)) << path;
  EXPECT_FALSE(contains(everything(), "bucket/a/b"));
}

TEST_F(TrackerTest, TopLevelFileMark_MarksTheRoot) {
  mark(tracker_, {file("object")});
  EXPECT_TRUE(contains(everything(), ""));
  EXPECT_FALSE(contains(everything(), "object"));
}

// ancestor 19
// Who finds the bits takes the position for that of the mark which set them, and is acknowledged by it.
TEST_F(TrackerTest, NewMark_AdvancesPositionBeforeItsBitsAreSet) {
  for (const MarkKind kind : {MarkKind::dir, MarkKind::file}) {
    const Tracker* made = nullptr;
    std::vector<JournalPosition> seen;
    auto options = small_options();
    options.before_bits = [&] { seen.push_back(made->position()); };
    Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
    made = &tracker;
    const JournalPosition position = mark(tracker, {Mark{"bucket/a/b", kind}}).position;
    EXPECT_GT(position, 0U);
    EXPECT_EQ(seen, std::vector{position});
  }
}

// After the first mark of a cycle, which opens a level.
TEST_F(TrackerTest, NewAndKnownMarksOfPaths_DoNotAllocate) {
  std::vector<Mark> marks;
  for (int i = 0; i < 20; ++i) {
    marks.push_back(dir("bucket/photos/2026/album-" + std::to_string(i) + "/a/b/c"));
    marks.push_back(file("bucket/photos/2026/album-" + std::to_string(i) + "/a/b/c/d/o.jpg"));
  }
  mark(tracker_, {dir("bucket")});
  const std::size_t before = support::allocation_count();
  const MarkOutcome added = tracker_.mark(marks);
  const MarkOutcome known = tracker_.mark(marks);
  const std::size_t after = support::allocation_count();
  EXPECT_EQ(added.added, marks.size());
  EXPECT_EQ(known.added, 0U);
  EXPECT_EQ(after, before);
}

TEST_F(TrackerTest, TreeMark_MarksItsParentsAndAllBelow) {
  mark(tracker_, {tree("bucket/a")});
  for (const std::string_view path : {"", "bucket", "bucket/a", "bucket/a/b/c"})
    EXPECT_TRUE(contains(everything(), path)) << path;
  EXPECT_FALSE(contains(everything(), "bucket/b"));
}

TEST_F(TrackerTest, MarkOutcome_CountsMarkedAndAdded) {
  mark(tracker_, {dir("bucket/a"), tree("bucket/t")});
  const MarkOutcome outcome = mark(tracker_, {dir("bucket/a"), file("bucket/a"), dir("bucket/b"),
                                              tree("bucket/t/below"), tree("bucket/u")});
  EXPECT_EQ(outcome.marked, 5U);
  EXPECT_EQ(outcome.added, 2U);
  EXPECT_EQ(outcome.cycle, CycleId{1});
}

TEST_F(TrackerTest, EmptyMarkBatch_ReturnsCurrentCycle) {
  tracker_.advance({4});
  const MarkOutcome outcome = mark(tracker_, {});
  EXPECT_EQ(outcome.marked, 0U);
  EXPECT_EQ(outcome.cycle, CycleId{4});
}

TEST_F(TrackerTest, PathMarkedInOlderCycle_IsNewInCurrent) {
  mark(tracker_, {dir("bucket/a")});
  tracker_.advance({2});
  EXPECT_EQ(mark(tracker_, {dir("bucket/a")}).added, 1U);
}

TEST_F(TrackerTest, NewPathBelowMarkedPrefix_IsAdded) {
  mark(tracker_, {dir("bucket/a")});
  EXPECT_EQ(mark(tracker_, {dir("bucket/a/b")}).added, 1U);
  EXPECT_EQ(mark(tracker_, {dir("bucket")}).added, 0U);
}

// --- cycles ---

TEST_F(TrackerTest, Advance_ClosesCurrentCycle) {
  mark(tracker_, {dir("one")});
  EXPECT_TRUE(tracker_.advance({2}));
  mark(tracker_, {dir("two")});
  const TrackerState state = tracker_.state();
  EXPECT_EQ(state.current, CycleId{2});
  EXPECT_FALSE(contains(*state.current_marks, "one"));
  EXPECT_TRUE(contains(*state.current_marks, "two"));
  ASSERT_EQ(state.history.size(), 1U);
  EXPECT_EQ(state.history[0].last, CycleId{1});
  EXPECT_TRUE(contains(*state.history[0].marks, "one"));
}

// ancestor 8: a cycle can go backwards, and marks of the overtaken one are not found.
TEST_F(TrackerTest, AdvanceToOlderOrSameCycle_IsRefused) {
  tracker_.advance({10});
  mark(tracker_, {dir("ten")});
  for (const std::uint64_t to : {0U, 1U, 9U, 10U}) {
    EXPECT_FALSE(tracker_.advance({to})) << to;
    EXPECT_EQ(tracker_.cycle(from(at(1), to)).current, CycleId{10}) << to;
  }
  EXPECT_EQ(tracker_.dirty("ten", {}).latest, CycleId{10});
}

TEST_F(TrackerTest, JumpOverCycleNumbers_IsNotAGap) {
  const Cursor cursor = tracker_.cycle(read_all(tracker_)).next();
  mark(tracker_, {dir("before")});
  tracker_.advance({1'000});
  mark(tracker_, {dir("after")});
  const CycleAnswer answer = tracker_.cycle(from(cursor));
  EXPECT_FALSE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "before"));
  EXPECT_TRUE(contains(answer.marks, "after"));
}

// ancestor 12: a request for cycle 2^40 holds the lock for hours. This test would not end.
TEST_F(TrackerTest, JumpToFarCycle_CostIgnoresSkippedNumbers) {
  mark(tracker_, {dir("bucket")});
  const CycleAnswer answer = tracker_.cycle(from(at(1), CycleId::jump_max));
  EXPECT_EQ(answer.current.value, CycleId::jump_max);
  EXPECT_FALSE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "bucket"));
  EXPECT_EQ(tracker_.state().history.size(), 1U);
}

TEST_F(TrackerTest, MoreCyclesThanSpans_CursorOfAnyAgeIsNotAGap) {
  for (std::uint64_t cycle = 1; cycle <= 300; ++cycle) {
    mark(tracker_, {dir("bucket/" + std::to_string(cycle))});
    tracker_.advance({cycle + 1});
  }
  const TrackerState state = tracker_.state();
  EXPECT_EQ(state.history.size(), 16U);
  EXPECT_EQ(state.oldest_kept, CycleId{1});
  EXPECT_TRUE(state.complete_since_birth);
  for (std::uint64_t oldest = 1; oldest <= 301; ++oldest) {
    const CycleAnswer answer = tracker_.cycle(from(at(oldest)));
    ASSERT_FALSE(answer.gap) << oldest;
    for (std::uint64_t cycle = oldest; cycle <= 300; ++cycle)
      ASSERT_TRUE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle << " from " << oldest;
  }
}

// A gap is a mark on the root: it costs a full walk.
TEST_F(TrackerTest, MarkOfEverything_IsNotMetAgainByScansThatHaveReadIt) {
  close_cycles(5);
  mark(tracker_, {tree("")});
  close_cycles(1'000);
  const CycleId last = tracker_.state().current;
  for (std::uint64_t oldest = 1; oldest <= last.value; ++oldest) {
    const CycleAnswer answer = tracker_.cycle(from(at(oldest)));
    ASSERT_FALSE(answer.gap);
    ASSERT_EQ(answer.marks.tree_marks().covers("anything"), oldest <= 6) << oldest;
  }
}

// docs/filters.md has the bound and why it holds.
TEST_F(TrackerTest, SpansGrowWithAge_SoThatACursorReadsLittleTwice) {
  SPOOR_RANDOM(random);
  const std::uint64_t largest = random.pick(std::vector<std::uint64_t>{1, 10, 100});
  const Tracker::Options options{.levels = LevelSchedule(2'000, 0.01)};
  Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
  std::vector<double> items;  // of each cycle
  for (std::uint64_t cycle = 1; cycle <= 400; ++cycle) {
    items.push_back(static_cast<double>(random.between(1, largest)));
    for (double number = 0; number < items.back(); ++number)
      mark(tracker, {dir(std::to_string(cycle) + " " + std::to_string(number))});
    tracker.advance({cycle + 1});
  }
  double newer = 0;
  double total = 0;
  for (const double each : items) total += each;
  const double bound = std::pow(total / items.back(), 1.0 / 8);
  double most = 0;
  for (std::uint64_t oldest = 400; oldest > 0; --oldest) {
    newer += items[oldest - 1];
    const MarkSet marks = tracker.cycle(from(at(oldest))).marks;
    most = std::max(most, MarkSetFigures::of(marks).items / newer);
  }
  RecordProperty("reads", std::to_string(most));
  EXPECT_LT(most, bound * 1.1) << "items are estimates";
}

TEST_F(TrackerTest, CycleNumbersFarApart_AreKeptByCount) {
  for (std::uint64_t cycle = 1; cycle <= 16; ++cycle) {
    mark(tracker_, {dir("bucket/" + std::to_string(cycle))});
    tracker_.advance({cycle * 1'000'000});
  }
  EXPECT_EQ(tracker_.state().history.size(), 16U);
}

TEST_F(TrackerTest, EmptyCycles_AreNotStoredInHistory) {
  mark(tracker_, {dir("bucket/kept")});
  for (std::uint64_t cycle = 2; cycle < 200; ++cycle) tracker_.advance({cycle});
  EXPECT_EQ(tracker_.state().history.size(), 1U);
  const CycleAnswer answer = tracker_.cycle(from(at(1)));
  EXPECT_FALSE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "bucket/kept"));
}

TEST_F(TrackerTest, CompleteSinceBirth_HoldsHoweverManyCycles) {
  close_cycles(40);
  EXPECT_TRUE(tracker_.state().complete_since_birth);
  EXPECT_TRUE(tracker_.cycle(from(at(1))).complete_since_birth);
}

// ids.h: a number no cluster gets to by counting is refused; what was saved after taking it could
// not be loaded again.
TEST_F(TrackerTest, CycleBeyondRequestMaximum_IsRefused) {
  mark(tracker_, {dir("bucket")});
  for (const std::uint64_t beyond : {CycleId::request_max + 1, most}) {
    EXPECT_FALSE(tracker_.advance({beyond}));
    const CycleAnswer answer = tracker_.cycle(from(at(1), beyond));
    EXPECT_EQ(answer.current, CycleId{1});
    EXPECT_FALSE(answer.gap);
  }
  EXPECT_TRUE(decode_snapshot(bytes_of(tracker_.state())));
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1))).marks, "bucket"));
}

TEST_F(TrackerTest, RequestOutOfReach_IsRefusedAndKeepsMarks) {
  mark(tracker_, {dir("bucket")});
  EXPECT_FALSE(tracker_.is_in_reach({2 + CycleId::jump_max}));
  const CycleAnswer answer = tracker_.cycle(from(at(1), 2 + CycleId::jump_max));
  EXPECT_EQ(answer.current, CycleId{1});
  EXPECT_FALSE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "bucket"))
      << "the cycle stays open, so its live marks belong to the answer";
  EXPECT_TRUE(tracker_.is_in_reach({1 + CycleId::jump_max}));
  EXPECT_TRUE(tracker_.cycle(from(at(1), 1 + CycleId::jump_max)).has_advanced);
  EXPECT_TRUE(decode_snapshot(bytes_of(tracker_.state())));
}

// Requests could once jump twice as far as they can now: a journal may hold such a jump.
TEST_F(TrackerTest, ReplayedJumpOutOfReach_IsApplied) {
  EXPECT_TRUE(tracker_.advance({1 + (std::uint64_t{1} << 32U)}));
}

TEST_F(TrackerTest, ReachAtLastCycle_EndsThere) {
  EXPECT_EQ(reach_of({CycleId::request_max - 1}), CycleId{CycleId::request_max});
  tracker_.advance({CycleId::request_max});
  EXPECT_TRUE(tracker_.is_in_reach({CycleId::request_max}));
  EXPECT_FALSE(tracker_.is_in_reach({CycleId::request_max + 1}));
}

// --- answers ---

TEST_F(TrackerTest, RequestOpeningCycle_ReturnsAllMarksBeforeIt) {
  mark(tracker_, {dir("one")});
  const CycleAnswer answer = tracker_.cycle(from(at(1), 2));
  EXPECT_EQ(answer.current, CycleId{2});
  EXPECT_TRUE(contains(answer.marks, "one"));
}

TEST_F(TrackerTest, RequestForCurrentCycle_ReturnsLiveMarks) {
  // Another scanner opened it; without the live marks, those made since would wait for one more
  // cycle.
  tracker_.advance({2});
  mark(tracker_, {dir("live")});
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 2)).marks, "live"));
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 1)).marks, "live")) << "passed";
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 0)).marks, "live")) << "only read";
}

TEST_F(TrackerTest, CycleAnswer_HoldsOnlyCyclesFromOldestOn) {
  close_cycles(5);
  const CycleAnswer answer = tracker_.cycle(from(at(3)));
  EXPECT_FALSE(answer.gap);
  for (const int cycle : {1, 2})
    EXPECT_FALSE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle;
  for (const int cycle : {3, 4, 5})
    EXPECT_TRUE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle;
}

// ancestor 16: with no or a gappy history the newest index of an answer is wrong.
TEST_F(TrackerTest, NextCursor_IsCurrentCycleForAnyHistory) {
  EXPECT_EQ(tracker_.cycle(from(at(1))).next(), at(1)) << "no history";
  tracker_.advance({5});
  EXPECT_EQ(tracker_.cycle(from(at(1))).next(), at(5)) << "an empty history";
  mark(tracker_, {dir("five")});
  EXPECT_EQ(tracker_.cycle(from(at(1), 9)).next(), at(9)) << "a gappy history";
}

TEST_F(TrackerTest, NextCursor_ReadsLiveCycleAgain) {
  mark(tracker_, {dir("before")});
  const Cursor cursor = tracker_.cycle(from(at(1))).next();
  mark(tracker_, {dir("after")});
  EXPECT_TRUE(contains(tracker_.cycle(from(cursor, 2)).marks, "after"));
}

// ancestor 21: a peer's cursor waits for it.
TEST_F(TrackerTest, OldCursor_ReturnsAllMarksSinceThen) {
  const Cursor cursor = tracker_.cycle(from(at(1))).next();
  close_cycles(16);
  const CycleAnswer answer = tracker_.cycle(from(cursor));
  EXPECT_FALSE(answer.gap);
  for (int cycle = 1; cycle <= 16; ++cycle)
    EXPECT_TRUE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle;
}

TEST_F(TrackerTest, CursorOfAnotherInstance_IsAGap) {
  EXPECT_TRUE(tracker_.cycle(from({instance_of(2), {1}})).gap);
}

TEST_F(TrackerTest, NoCursor_IsAGap) { EXPECT_TRUE(tracker_.cycle(CycleRequest()).gap); }

// ancestor 11: a new cluster has no usable filter before cycle 17.
TEST_F(TrackerTest, SecondRequestToNewTracker_IsNotAGap) {
  const CycleAnswer first = tracker_.cycle({{2}, {}, {}, true});
  ASSERT_TRUE(first.gap);
  EXPECT_FALSE(tracker_.cycle(from(first.next(), 3)).gap);
}

// ancestor 5 and 20: the check is exact, and what is not kept differs from "no".
TEST_F(TrackerTest, CursorBeforeOldestKeptCycle_IsAGap) {
  close_cycles(20);
  TrackerState state = tracker_.state();
  state.oldest_kept = {5};
  Tracker restored(small_options(), clock_, std::move(state));
  EXPECT_FALSE(restored.cycle(from(at(5))).gap);
  EXPECT_TRUE(restored.cycle(from(at(4))).gap);
  EXPECT_TRUE(restored.cycle(from(at(0))).gap);
}

TEST_F(TrackerTest, Gap_ReturnsAllKeptMarks) {
  close_cycles(20);
  for (const Cursor& cursor : {at(0), at(most), Cursor{instance_of(2), {19}}, Cursor{}}) {
    const CycleAnswer answer = tracker_.cycle(from(cursor));
    ASSERT_TRUE(answer.gap);
    for (int cycle = 1; cycle <= 20; ++cycle)
      EXPECT_TRUE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle;
  }
}

// ancestor 10: `oldest` above `current` answers "complete" with an empty filter.
TEST_F(TrackerTest, CursorAheadOfCurrentCycle_IsAGap) {
  tracker_.advance({5});
  EXPECT_FALSE(tracker_.cycle(from(at(5))).gap);
  EXPECT_TRUE(tracker_.cycle(from(at(6))).gap);
  EXPECT_TRUE(tracker_.cycle(from(at(most))).gap);
}

// ancestor 10, in disguise: this instance never gave such a cursor, so one that comes back is from
// a future that was rolled back (a data directory restored from a backup), and its marks are gone.
TEST_F(TrackerTest, CursorAheadInRequestOpeningLaterCycle_IsAGap) {
  tracker_.advance({5});
  mark(tracker_, {dir("bucket")});
  const CycleAnswer answer = tracker_.cycle(from(at(8), 10));
  EXPECT_TRUE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "bucket"));
}

// ancestor 9: a request with a high `oldest` prunes the history for everybody.
TEST_F(TrackerTest, RequestRange_NeverChangesHistory) {
  close_cycles(10);
  mark(tracker_, {dir("live")});
  const std::string before = bytes_of(tracker_.state());
  for (const std::uint64_t oldest :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{5}, std::uint64_t{11}, std::uint64_t{12}, most}) {
    for (const std::uint64_t current : {0U, 1U, 11U}) {
      tracker_.cycle(from(at(oldest), current));
      tracker_.cycle(from({instance_of(9), {oldest}}, current));
    }
  }
  EXPECT_TRUE(bytes_of(tracker_.state()) == before);
}

TEST_F(TrackerTest, MarksNotWanted_OpensCycleWithoutMarks) {
  mark(tracker_, {dir("bucket")});
  CycleRequest request = from(at(1), 3);
  request.marks_wanted = false;
  const CycleAnswer answer = tracker_.cycle(request);
  EXPECT_EQ(answer.current, CycleId{3});
  EXPECT_EQ(answer.instance, instance_);
  EXPECT_TRUE(answer.marks.empty());
}

TEST_F(TrackerTest, RestoredForeignShapes_AreInCycleAnswer) {
  Tracker restored(small_options(), clock_, varied_state());
  mark(restored, {dir("own")});
  const MarkSet marks = restored.cycle(read_all(restored)).marks;
  EXPECT_TRUE(marks.filters_may_contain(hash_path("own")));
  EXPECT_TRUE(marks.filters_may_contain(hash_path("foreign")));
  EXPECT_TRUE(marks.filters_may_contain(hash_path("bucket/three")));
}

// --- single paths ---

TEST_F(TrackerTest, Dirty_ReturnsNewestCycleOfPath) {
  for (const std::uint64_t cycle : {1U, 4U, 6U}) {
    tracker_.advance({cycle});
    mark(tracker_, {dir("bucket/a")});
  }
  tracker_.advance({9});
  mark(tracker_, {dir("bucket/b")});
  EXPECT_EQ(tracker_.dirty("bucket/a", {}).latest, CycleId{6});
  EXPECT_EQ(tracker_.dirty("bucket", {}).latest, CycleId{9});
  EXPECT_FALSE(tracker_.dirty("bucket/c", {}).latest);
}

TEST_F(TrackerTest, DirtySinceCycle_IgnoresOlderCycles) {
  mark(tracker_, {dir("bucket/a")});
  tracker_.advance({2});
  EXPECT_TRUE(tracker_.dirty("bucket/a", {1}).latest);
  EXPECT_FALSE(tracker_.dirty("bucket/a", {2}).latest);
  mark(tracker_, {dir("bucket/a")});
  EXPECT_TRUE(tracker_.dirty("bucket/a", {2}).latest);
  EXPECT_FALSE(tracker_.dirty("bucket/a", {3}).latest);
}

TEST_F(TrackerTest, Dirty_FindsTreeMarksInClosedAndCurrentCycles) {
  mark(tracker_, {tree("bucket/old")});
  tracker_.advance({2});
  mark(tracker_, {tree("bucket/new")});
  EXPECT_EQ(tracker_.dirty("bucket/old/x", {}).latest, CycleId{1});
  EXPECT_EQ(tracker_.dirty("bucket/new/x", {}).latest, CycleId{2});
}

TEST_F(TrackerTest, DirtyInASpan_ReturnsItsLastCycle) {
  close_cycles(20);
  const CycleId last = tracker_.state().history.front().last;
  EXPECT_GT(last, CycleId{1});
  EXPECT_EQ(tracker_.dirty("bucket/1", {1}).latest, last);
  EXPECT_EQ(tracker_.status().cycles.back().first, CycleId{1});
  EXPECT_EQ(tracker_.status().cycles.back().last, last);
}

// ancestor 20: a lookup below the kept history answers as if never marked.
TEST_F(TrackerTest, DirtyBelowHistory_ReturnsOldestKeptCycle) {
  EXPECT_EQ(tracker_.dirty("bucket/1", {}).oldest_kept, CycleId{1});
  mark(tracker_, {dir("bucket/2")});
  TrackerState state = tracker_.state();
  state.current = state.oldest_kept = {5};
  const Tracker restored(small_options(), clock_, std::move(state));
  const DirtyAnswer answer = restored.dirty("bucket/1", {1});
  EXPECT_FALSE(answer.latest);
  EXPECT_EQ(answer.oldest_kept, CycleId{5});
}

// --- age ---

TEST_F(TrackerTest, CycleAge_IsTimeSinceItWasOpened) {
  tracker_.advance({2});
  clock_.advance(seconds(90));
  EXPECT_EQ(tracker_.cycle(from(at(2))).current_age, seconds(90));
  EXPECT_EQ(tracker_.status().current_age, seconds(90));
  tracker_.advance({3});
  EXPECT_EQ(tracker_.status().current_age, milliseconds(0));
}

TEST_F(TrackerTest, WallClockJump_DoesNotChangeCycleAge) {
  clock_.advance(seconds(10));
  clock_.set_wall(clock_.wall_now() + hours(1'000));
  EXPECT_EQ(tracker_.status().current_age, seconds(10));
  clock_.set_wall(clock_.wall_now() - hours(2'000));
  EXPECT_EQ(tracker_.status().current_age, seconds(10));
}

TEST_F(TrackerTest, RestoredCycle_AgeIncludesDowntime) {
  const TrackerState state = tracker_.state();
  clock_.advance(hours(3));
  EXPECT_EQ(Tracker(small_options(), clock_, state).status().current_age, hours(3));
}

TEST_F(TrackerTest, RestoredCycleFromTheFuture_HasAgeZero) {
  const TrackerState state = tracker_.state();
  clock_.set_wall(state.current_opened_at - hours(5));
  EXPECT_EQ(Tracker(small_options(), clock_, state).status().current_age, milliseconds(0));
}

// --- state ---

// ancestor 13: what was marked before and after the start is found alike.
TEST_F(TrackerTest, RestoredTracker_KeepsOldMarksAndAddsNewOnes) {
  close_cycles(2);
  mark(tracker_, {dir("live")});
  Tracker restored(small_options(), clock_, tracker_.state());
  mark(restored, {dir("new")});
  const MarkSet marks = restored.cycle(read_all(restored)).marks;
  for (const std::string_view path : {"bucket/1", "bucket/2", "live", "new"})
    EXPECT_TRUE(contains(marks, path)) << path;
}

TEST_F(TrackerTest, State_IsUnchangedByLaterMarks) {
  mark(tracker_, {dir("before")});
  const TrackerState state = tracker_.state();
  mark(tracker_, {dir("after"), tree("tree")});
  tracker_.advance({2});
  EXPECT_TRUE(contains(*state.current_marks, "before"));
  EXPECT_FALSE(contains(*state.current_marks, "after"));
  EXPECT_FALSE(contains(*state.current_marks, "tree"));
  EXPECT_TRUE(state.history.empty());
}

TEST_F(TrackerTest, RestoredStateWithTooMuchHistory_IsFolded) {
  close_cycles(10);
  Tracker::Options options = small_options();
  options.history_max = 3;
  const Tracker restored(options, clock_, tracker_.state());
  const TrackerState state = restored.state();
  EXPECT_EQ(state.history.size(), 3U);
  EXPECT_EQ(state.oldest_kept, CycleId{1});
  for (int cycle = 1; cycle <= 10; ++cycle)
    EXPECT_TRUE(restored.dirty("bucket/" + std::to_string(cycle), {}).latest) << cycle;
}

TEST_F(TrackerTest, Position_ChangesExactlyWhenStateChanges) {
  // A save is skipped where the position stands still (ancestor 14).
  const auto changed = [&](auto&& act) {
    const JournalPosition position = tracker_.position();
    const std::string state = bytes_of(tracker_.state());
    act();
    EXPECT_EQ(tracker_.position() != position, bytes_of(tracker_.state()) != state);
    return tracker_.position() != position;
  };
  EXPECT_TRUE(changed([&] { mark(tracker_, {dir("bucket/a")}); }));
  EXPECT_FALSE(changed([&] { mark(tracker_, {dir("bucket/a")}); }));
  EXPECT_TRUE(changed([&] { mark(tracker_, {tree("bucket/a")}); }));
  EXPECT_FALSE(changed([&] { mark(tracker_, {tree("bucket/a/b")}); }));
  EXPECT_FALSE(changed([&] { tracker_.cycle(from(at(1))); }));
  EXPECT_TRUE(changed([&] { tracker_.cycle(from(at(1), 2)); }));
  EXPECT_TRUE(changed([&] { tracker_.advance({3}); })) << "even where the closed cycle was empty";
  EXPECT_FALSE(changed([&] { tracker_.advance({3}); }));
}

TEST_F(TrackerTest, Status_ListsCyclesNewestFirst) {
  close_cycles(2);
  mark(tracker_, {dir("bucket/a/b"), tree("x"), tree("y")});
  const TrackerStatus status = tracker_.status();
  EXPECT_EQ(status.instance, instance_);
  EXPECT_EQ(status.current, CycleId{3});
  ASSERT_EQ(status.cycles.size(), 3U);
  EXPECT_EQ(status.cycles[0].last, CycleId{3});
  EXPECT_EQ(status.cycles[1].last, CycleId{2});
  EXPECT_EQ(status.cycles[2].last, CycleId{1});
  EXPECT_EQ(status.cycles[0].tree_marks, 2U);
  EXPECT_EQ(status.cycles[0].levels, 1U);
  EXPECT_NEAR(status.cycles[0].filter.items, 3, 0.1);
  EXPECT_FALSE(status.cycles[0].saturated);
}

}  // namespace
}  // namespace spoor::tracker
