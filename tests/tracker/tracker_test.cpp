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

TEST_F(TrackerTest, Mark_MarksWhatItsKindSays) {
  struct Case {
    Mark mark;
    std::vector<std::string_view> marked;
    std::vector<std::string_view> not_marked;
  };
  const Case cases[] = {
      {dir("bucket/a/b"), {"bucket", "bucket/a", "bucket/a/b"}, {"a", "bucket/b", "bucket/a/b/c"}},
      {file("bucket/a/b"), {"bucket", "bucket/a"}, {"bucket/a/b"}},  // ancestor 23: leaves fill the filter.
      {file("object"), {""}, {"object"}},
      {tree("bucket/a"), {"", "bucket", "bucket/a", "bucket/a/b/c"}, {"bucket/b"}},
  };
  for (const Case& each : cases) {
    Tracker tracker(small_options(), clock_, Tracker::born(instance_, clock_));
    mark(tracker, {each.mark});
    const MarkSet marks = tracker.cycle(read_all(tracker)).marks;
    for (const std::string_view path : each.marked) EXPECT_TRUE(contains(marks, path)) << path;
    for (const std::string_view path : each.not_marked) EXPECT_FALSE(contains(marks, path)) << path;
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

TEST_F(TrackerTest, MarkOutcome_CountsMarkedAndAdded) {
  mark(tracker_, {dir("bucket/a"), tree("bucket/t")});
  const MarkOutcome outcome = mark(tracker_, {dir("bucket/a"), file("bucket/a"), dir("bucket/b"),
                                              tree("bucket/t/below"), tree("bucket/u")});
  EXPECT_EQ(outcome.marked, 5U);
  EXPECT_EQ(outcome.added, 2U);
  EXPECT_EQ(outcome.cycle, CycleId{1});
  EXPECT_EQ(mark(tracker_, {dir("bucket/a/b")}).added, 1U) << "below a marked one";
  EXPECT_EQ(mark(tracker_, {dir("bucket")}).added, 0U);
  tracker_.advance({4});
  EXPECT_EQ(mark(tracker_, {dir("bucket/a")}).added, 1U) << "in a new cycle";
  const MarkOutcome empty = mark(tracker_, {});
  EXPECT_EQ(empty.marked, 0U);
  EXPECT_EQ(empty.cycle, CycleId{4});
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

// ancestor 12: a request for cycle 2^40 holds the lock for hours. This test would not end.
TEST_F(TrackerTest, JumpToFarCycle_IsNotAGapAndItsCostIgnoresSkippedNumbers) {
  mark(tracker_, {dir("before")});
  const CycleAnswer answer = tracker_.cycle(from(at(1), CycleId::jump_max));
  EXPECT_EQ(answer.current.value, CycleId::jump_max);
  mark(tracker_, {dir("after")});
  for (const CycleAnswer& each : {answer, tracker_.cycle(from(at(1)))}) {
    EXPECT_FALSE(each.gap);
    EXPECT_TRUE(contains(each.marks, "before"));
  }
  EXPECT_TRUE(contains(everything(), "after"));
  for (std::uint64_t jump = 1; jump <= 15; ++jump) {
    mark(tracker_, {dir("bucket/" + std::to_string(jump))});
    tracker_.advance({CycleId::jump_max + jump * 1'000'000});
  }
  EXPECT_EQ(tracker_.state().history.size(), 16U) << "kept by their count";
}

// ancestor 21: a peer's cursor waits for it.
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
    ASSERT_TRUE(!answer.gap && answer.complete_since_birth) << oldest;
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

TEST_F(TrackerTest, EmptyCycles_AreNotStoredInHistory) {
  mark(tracker_, {dir("bucket/kept")});
  for (std::uint64_t cycle = 2; cycle < 200; ++cycle) tracker_.advance({cycle});
  EXPECT_EQ(tracker_.state().history.size(), 1U);
  const CycleAnswer answer = tracker_.cycle(from(at(1)));
  EXPECT_FALSE(answer.gap);
  EXPECT_TRUE(contains(answer.marks, "bucket/kept"));
}

// A number no cluster gets to by counting is refused; what was saved after taking it could not be loaded
// again.
TEST_F(TrackerTest, RequestOutOfReach_IsRefusedAndKeepsMarks) {
  mark(tracker_, {dir("bucket")});
  for (const std::uint64_t beyond : {2 + CycleId::jump_max, CycleId::request_max + 1, most}) {
    EXPECT_FALSE(tracker_.is_in_reach({beyond}));
    const CycleAnswer answer = tracker_.cycle(from(at(1), beyond));
    EXPECT_EQ(answer.current, CycleId{1});
    EXPECT_FALSE(answer.gap);
    EXPECT_TRUE(contains(answer.marks, "bucket"))
        << "the cycle stays open, so its live marks belong to the answer";
  }
  EXPECT_FALSE(tracker_.advance({CycleId::request_max + 1}));
  EXPECT_TRUE(tracker_.is_in_reach({1 + CycleId::jump_max}));
  EXPECT_TRUE(tracker_.cycle(from(at(1), 1 + CycleId::jump_max)).has_advanced);
  EXPECT_TRUE(decode_snapshot(bytes_of(tracker_.state())));
  EXPECT_TRUE(tracker_.advance({CycleId::request_max})) << "a replay repeats any step";
  EXPECT_EQ(reach_of({CycleId::request_max - 1}), CycleId{CycleId::request_max});
  EXPECT_TRUE(tracker_.is_in_reach({CycleId::request_max}));
  EXPECT_FALSE(tracker_.is_in_reach({CycleId::request_max + 1}));
}

// --- answers ---

TEST_F(TrackerTest, Request_ReturnsAllMarksBeforeTheCycleItOpensAndElseLiveMarks) {
  mark(tracker_, {dir("one")});
  const CycleAnswer answer = tracker_.cycle(from(at(1), 2));
  EXPECT_EQ(answer.current, CycleId{2});
  EXPECT_EQ(answer.position, tracker_.position()) << "the cursor holds once the advance is durable";
  EXPECT_TRUE(contains(answer.marks, "one"));
  // Another scanner opened it; without the live marks, those made since would wait for one more cycle.
  mark(tracker_, {dir("live")});
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 2)).marks, "live"));
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 1)).marks, "live")) << "passed";
  EXPECT_TRUE(contains(tracker_.cycle(from(at(1), 0)).marks, "live")) << "only read";
  CycleRequest request = from(at(1), 3);
  request.marks_wanted = false;
  const CycleAnswer without_marks = tracker_.cycle(request);
  EXPECT_EQ(without_marks.current, CycleId{3});
  EXPECT_EQ(without_marks.instance, instance_);
  EXPECT_TRUE(without_marks.marks.empty());
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
TEST_F(TrackerTest, NextCursor_IsTheCurrentCycleWhichItReadsAgain) {
  EXPECT_EQ(tracker_.cycle(from(at(1))).next(), at(1)) << "no history";
  tracker_.advance({5});
  const Cursor cursor = tracker_.cycle(from(at(1))).next();
  EXPECT_EQ(cursor, at(5)) << "an empty history";
  mark(tracker_, {dir("five")});
  const CycleAnswer answer = tracker_.cycle(from(cursor, 9));
  EXPECT_TRUE(contains(answer.marks, "five"));
  EXPECT_EQ(answer.next(), at(9)) << "a gappy history";
}

// ancestor 10: `oldest` above `current` answers "complete" with an empty filter. This instance never gave
// such a cursor, so one that comes back is from a future that was rolled back (a data directory restored from
// a backup), and its marks are gone; even if the request opens a cycle beyond it.
TEST_F(TrackerTest, CursorThatWasNeverGiven_IsAGapWithAllKeptMarks) {
  close_cycles(20);
  EXPECT_FALSE(tracker_.cycle(from(at(21))).gap);
  for (const auto& [cursor, current] : {std::pair{at(0), 0},
                                        {at(most), 0},
                                        {Cursor{instance_of(2), {19}}, 0},
                                        {Cursor{}, 0},
                                        {at(22), 0},
                                        {at(24), 26}}) {
    const CycleAnswer answer = tracker_.cycle(from(cursor, static_cast<std::uint64_t>(current)));
    ASSERT_TRUE(answer.gap) << cursor.cycle.value;
    for (int cycle = 1; cycle <= 20; ++cycle)
      EXPECT_TRUE(contains(answer.marks, "bucket/" + std::to_string(cycle))) << cycle;
  }
}

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

// --- single paths ---

TEST_F(TrackerTest, Dirty_ReturnsNewestCycleOfPathSinceACycle) {
  for (const std::uint64_t cycle : {1U, 4U, 6U}) {
    tracker_.advance({cycle});
    mark(tracker_, {dir("bucket/a"), tree("tree/" + std::to_string(cycle))});
  }
  tracker_.advance({9});
  mark(tracker_, {dir("bucket/b")});
  EXPECT_EQ(tracker_.dirty("bucket/a", {}).latest, CycleId{6});
  EXPECT_EQ(tracker_.dirty("bucket", {}).latest, CycleId{9});
  EXPECT_EQ(tracker_.dirty("bucket/b", {9}).latest, CycleId{9});
  EXPECT_EQ(tracker_.dirty("tree/4/x", {}).latest, CycleId{4});
  EXPECT_EQ(tracker_.dirty("bucket/a", {6}).latest, CycleId{6});
  EXPECT_FALSE(tracker_.dirty("bucket/a", {7}).latest);
  EXPECT_FALSE(tracker_.dirty("bucket/b", {10}).latest);
  EXPECT_FALSE(tracker_.dirty("bucket/c", {}).latest);
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

TEST_F(TrackerTest, CycleAge_IsTimeSinceItWasOpenedWhateverTheWallClock) {
  tracker_.advance({2});
  clock_.advance(seconds(90));
  EXPECT_EQ(tracker_.cycle(from(at(2))).current_age, seconds(90));
  clock_.set_wall(clock_.wall_now() + hours(1'000));
  EXPECT_EQ(tracker_.status().current_age, seconds(90));
  clock_.set_wall(clock_.wall_now() - hours(2'000));
  EXPECT_EQ(tracker_.status().current_age, seconds(90));
  tracker_.advance({3});
  EXPECT_EQ(tracker_.status().current_age, milliseconds(0));
}

TEST_F(TrackerTest, RestoredCycle_AgeIncludesDowntimeAndIsNeverNegative) {
  const TrackerState state = tracker_.state();
  clock_.advance(hours(3));
  EXPECT_EQ(Tracker(small_options(), clock_, state).status().current_age, hours(3));
  clock_.set_wall(state.current_opened_at - hours(5));
  EXPECT_EQ(Tracker(small_options(), clock_, state).status().current_age, milliseconds(0));
}

// --- state ---

// ancestor 13: what was marked before and after the start is found alike, in filters of any shape.
TEST_F(TrackerTest, RestoredTracker_KeepsOldMarksAndAddsNewOnes) {
  close_cycles(2);
  mark(tracker_, {dir("live")});
  Tracker restored(small_options(), clock_, tracker_.state());
  mark(restored, {dir("new")});
  const MarkSet marks = restored.cycle(read_all(restored)).marks;
  for (const std::string_view path : {"bucket/1", "bucket/2", "live", "new"})
    EXPECT_TRUE(contains(marks, path)) << path;
  Tracker varied(small_options(), clock_, varied_state());
  mark(varied, {dir("own")});
  const MarkSet all = varied.cycle(read_all(varied)).marks;
  for (const char* path : {"own", "foreign", "bucket/three"})
    EXPECT_TRUE(all.filters_may_contain(hash_path(path))) << path;
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
