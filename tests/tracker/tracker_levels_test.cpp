// A cycle that grows, and the levels at which the next ones begin.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

#include "tests/support/random.h"
#include "tests/tracker/samples.h"

namespace spoor::tracker {
namespace {

constexpr std::uint64_t items = 200;

class TrackerLevelsTest : public ::testing::Test {
 protected:
  explicit TrackerLevelsTest(Tracker::Options options = {.levels = LevelSchedule(items, 0.1)})
      : options_(std::move(options)) {}

  std::string path(std::uint64_t number) const { return fmt::format("path-{}", number); }

  void mark_paths(std::uint64_t from, std::uint64_t to) {
    for (; from < to; ++from) mark(tracker_, {dir(path(from))});
  }

  // The levels of the current cycle's filters.
  std::vector<std::size_t> levels() { return levels_of(*tracker_.state().current_marks); }
  std::vector<std::size_t> levels_of(const MarkSet& marks) {
    std::vector<std::size_t> found;
    for (const BloomFilter& filter : marks.filters()) {
      found.push_back(options_.levels.level_of(filter.shape()).value());
    }
    return found;
  }

  // Opens the next cycle with this request, marks one path, and says with which level it began.
  std::size_t first_level_after(std::size_t start_level) {
    ask(start_level, next(tracker_.status().current));
    mark(tracker_, {dir("first")});
    return levels().at(0);
  }
  CycleAnswer ask(std::size_t start_level, CycleId current) {
    CycleRequest request = read_all(tracker_);
    request.current = current;
    request.start_level = start_level;
    return tracker_.cycle(request);
  }

  // Of all filters, as kept.
  std::uint64_t memory_bytes() {
    const TrackerState state = tracker_.state();
    std::uint64_t bytes = 0;
    for (const BloomFilter& filter : state.current_marks->filters()) bytes += filter.shape().byte_count();
    for (const ClosedSpan& span : state.history) bytes += span.marks->memory_bytes();
    return bytes;
  }

  void restart() {
    const TrackerState state = tracker_.state();
    tracker_.~Tracker();
    new (&tracker_) Tracker(options_, clock_, state);
  }

  const Tracker::Options options_;
  fakes::ManualClock clock_;
  Tracker tracker_{options_, clock_, Tracker::born(instance_of(1), clock_)};
};

TEST_F(TrackerLevelsTest, FullLevel_OpensTheNextLevel) {
  mark_paths(0, items / 2);
  EXPECT_EQ(levels(), std::vector<std::size_t>({0}));
  mark_paths(items / 2, 7 * items / 2);
  EXPECT_EQ(levels(), std::vector<std::size_t>({0, 1, 2}));
  const CycleFigures figures = tracker_.status().cycles.front();
  EXPECT_EQ(figures.levels, 3U);
  EXPECT_FALSE(figures.saturated);
  EXPECT_NEAR(figures.filter.items, 7 * items / 2, 0.15 * 7 * items / 2);
  EXPECT_EQ(mark(tracker_, {dir(path(0)), dir(path(1))}).added, 0U) << "in an older level";
}

TEST_F(TrackerLevelsTest, GrowingCycle_KeepsAllMarksAndFalsePositiveRate) {
  constexpr std::uint64_t count = 100 * items;
  mark_paths(0, count);
  EXPECT_EQ(levels(), std::vector<std::size_t>({0, 1, 2, 3, 4, 5, 6}));
  const MarkSet marks = ask(0, {}).marks;
  for (std::uint64_t number = 0; number < count; ++number) {
    ASSERT_TRUE(contains(marks, path(number))) << number;
  }
  std::uint64_t wrong = 0;
  for (std::uint64_t number = count; number < 2 * count; ++number) {
    if (contains(marks, path(number))) ++wrong;
  }
  EXPECT_LT(static_cast<double>(wrong), options_.levels.fp_rate_max() * static_cast<double>(count));
  EXPECT_LT(tracker_.status().cycles.front().filter.fp_rate, options_.levels.fp_rate_max());
}

TEST_F(TrackerLevelsTest, StartLevelRequested_TheLargestIsUsedAndItDropsByOneLevelPerCycle) {
  ask(2, {});
  ask(4, tracker_.status().current);
  mark(tracker_, {dir("a")});
  EXPECT_EQ(levels(), std::vector<std::size_t>({0})) << "the cycle that has begun goes on";
  EXPECT_EQ(first_level_after(3), 4U);
  EXPECT_EQ(levels().size(), 1U);
  EXPECT_EQ(first_level_after(1), 3U);
  EXPECT_EQ(first_level_after(0), 2U);
  EXPECT_EQ(first_level_after(1), 1U);
  EXPECT_EQ(first_level_after(0), 0U);
  EXPECT_EQ(first_level_after(0), 0U);
  ask(1'000'000, {});
  EXPECT_LE(first_level_after(0), options_.levels.last());
}

// What it holds is merged with the cycles after it.
TEST_F(TrackerLevelsTest, GrownCycle_NextOneStartsWhereThereIsRoom) {
  mark_paths(0, 4 * items);
  EXPECT_EQ(first_level_after(0), 2U);
}

TEST_F(TrackerLevelsTest, SamePathsInEachCycle_DoNotRaiseTheStartLevel) {
  for (std::uint64_t cycle = 1; cycle <= 20; ++cycle) {
    mark_paths(0, items / 3);
    tracker_.advance({cycle + 1});
  }
  EXPECT_EQ(first_level_after(0), 0U);
}

TEST_F(TrackerLevelsTest, Restart_ContinuesAtSameLevel) {
  mark_paths(0, 2 * items);
  restart();
  mark_paths(2 * items, 5 * items / 2);
  EXPECT_EQ(levels(), std::vector<std::size_t>({0, 1}));
  for (std::uint64_t number = 0; number < 5 * items / 2; ++number) {
    ASSERT_TRUE(contains(ask(0, {}).marks, path(number)));
  }
}

TEST_F(TrackerLevelsTest, ForeignShapeFilter_IsKeptAndGetsNoMarks) {
  TrackerState state = Tracker::born(instance_of(1), clock_);
  state.current_marks = std::make_shared<const MarkSet>(mark_set_of({"foreign"}, {777, 3}));
  Tracker tracker(options_, clock_, state);
  mark(tracker, {dir("own")});
  const auto marks = tracker.state().current_marks;
  ASSERT_EQ(marks->filters().size(), 2U);
  EXPECT_EQ(marks->filters()[0].shape(), (BloomShape{777, 3}));
  EXPECT_EQ(marks->filters()[0].bits_set(), 3U);
  EXPECT_TRUE(contains(*marks, "foreign"));
  EXPECT_TRUE(contains(*marks, "own"));
}

// A history of sparse large filters would else fill the memory.
TEST_F(TrackerLevelsTest, SparseClosedCycle_IsPacked) {
  first_level_after(6);
  const std::uint64_t open = memory_bytes();
  tracker_.advance(next(tracker_.status().current));
  EXPECT_LT(memory_bytes(), open / 20);
  EXPECT_TRUE(contains(ask(0, {}).marks, "first"));
  EXPECT_TRUE(tracker_.dirty("first", {}).latest.has_value());
}

class BoundedTrackerTest : public TrackerLevelsTest {
 protected:
  BoundedTrackerTest()
      : TrackerLevelsTest(
            {.levels = LevelSchedule(items, 0.1), .history_max = 3, .memory_bytes_max = 8'000}) {}
};

TEST_F(BoundedTrackerTest, CycleAtMemoryBound_IsSaturatedAndKeepsMarks) {
  mark_paths(0, 100 * items);
  EXPECT_TRUE(tracker_.status().cycles.front().saturated);
  EXPECT_LT(levels().back(), 4U);
  for (std::uint64_t number = 0; number < 100 * items; ++number) {
    ASSERT_TRUE(tracker_.dirty(path(number), {}).latest) << number;
  }
  tracker_.advance({2});
  EXPECT_FALSE(tracker_.status().cycles.front().saturated);
  EXPECT_TRUE(tracker_.status().cycles.back().saturated) << "and goes on saying so";
}

// Only what is older than what is dropped is a gap.
TEST_F(BoundedTrackerTest, FullCycles_StayWithinTheMemoryOfWhichHistoryTakesHalf) {
  for (std::uint64_t cycle = 1; cycle < 20 || tracker_.status().spans_dropped == 0; ++cycle) {
    ASSERT_LT(cycle, 50U);
    mark_paths(cycle * 1'000'000, cycle * 1'000'000 + 30 * items);
    ASSERT_LE(memory_bytes(), options_.memory_bytes_max);
    tracker_.advance({cycle + 1});
  }
  const TrackerState state = tracker_.state();
  EXPECT_GT(state.oldest_kept, CycleId{1});
  EXPECT_FALSE(state.complete_since_birth);
  ASSERT_FALSE(state.history.empty());
  EXPECT_TRUE(tracker_.cycle({{}, {1}, state.instance, true}).gap);
  const CycleAnswer kept = tracker_.cycle({{}, state.oldest_kept, state.instance, true});
  EXPECT_FALSE(kept.gap);
  for (std::uint64_t number = 0; number < 30 * items; ++number)
    ASSERT_TRUE(contains(kept.marks, path(state.oldest_kept.value * 1'000'000 + number))) << number;
}

TEST_F(TrackerLevelsTest, MergeOfCyclesThatAreNotSaturated_IsNotSaturated) {
  auto options = options_;
  options.history_max = 1;
  Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
  for (std::uint64_t number = 0; number < items / 3; ++number) mark(tracker, {dir(path(number))});
  tracker.advance({2});
  for (std::uint64_t number = items; number < 2 * items - items / 10; ++number)
    mark(tracker, {dir(path(number))});
  tracker.advance({3});
  const auto merged = tracker.status().cycles.back();
  EXPECT_EQ(merged.first, CycleId{1});
  EXPECT_EQ(merged.levels, 1U);
  EXPECT_FALSE(merged.saturated);
}

// A scanner that was away merges them all, and no request told the tracker so.
TEST_F(TrackerLevelsTest, MuchMarkedInEachCycle_MergeOfAllStaysSelective) {
  for (std::uint64_t cycle = 1; cycle <= 15; ++cycle) {
    mark_paths(cycle * 1'000'000, cycle * 1'000'000 + items / 2);
    tracker_.advance({cycle + 1});
  }
  const auto answer = tracker_.cycle({{}, {1}, tracker_.state().instance, true});
  ASSERT_FALSE(answer.gap);
  EXPECT_LT(MarkSetFigures::of(answer.marks).fp_rate, options_.levels.fp_rate_max());
}

TEST_F(BoundedTrackerTest, StartLevelBeyondMemoryBound_IsLargestThatFits) {
  const std::size_t level = first_level_after(9);
  EXPECT_GT(level, 0U);
  EXPECT_LT(level, 4U);
  EXPECT_LE(memory_bytes(), options_.memory_bytes_max);
}

TEST_F(BoundedTrackerTest, ZeroMemoryBound_KeepsOneLevel) {
  const Tracker::Options options{.levels = LevelSchedule(items, 0.1), .memory_bytes_max = 0};
  Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
  for (std::uint64_t number = 0; number < 10 * items; ++number) mark(tracker, {dir(path(number))});
  EXPECT_TRUE(tracker.status().cycles.front().saturated);
  EXPECT_EQ(tracker.state().current_marks->filters().size(), 1U);
}

// The records so far, sorted: a tracker keeps those of each processor together, wherever the thread ran.
std::vector<std::string> sorted_records(Tracker& tracker) {
  const std::string all = tracker.take_records().records;
  std::vector<std::string> records;
  for (std::string_view rest = all; !rest.empty();) {
    const std::string_view before = rest;
    if (!take_record(rest)) {
      ADD_FAILURE() << "no record";
      break;
    }
    records.emplace_back(before.substr(0, before.size() - rest.size()));
  }
  std::ranges::sort(records);
  return records;
}

// Several are made in one stay inside the gate, and levels open in the middle of that.
TEST_F(TrackerLevelsTest, MarkBatch_EqualsMarksOneByOne) {
  SPOOR_RANDOM(random);
  Tracker one_by_one(options_, clock_, tracker_.state());
  tracker_.start_recording();
  one_by_one.start_recording();
  for (int round = 0; round < 200; ++round) {
    std::vector<Mark> marks;
    for (std::uint64_t count = random.below(40); marks.size() < count;) {
      const MarkKind kind = random.one_in(10)  ? MarkKind::tree
                            : random.one_in(3) ? MarkKind::file
                                               : MarkKind::dir;
      marks.push_back({fmt::format("{}/{}/{}", random.below(4), random.below(20), random.below(2000)), kind});
    }
    const MarkOutcome together = tracker_.mark(marks);
    MarkOutcome all;
    for (const Mark& mark : marks) {
      const MarkOutcome outcome = one_by_one.mark(std::span(&mark, 1));
      all.marked += outcome.marked;
      all.added += outcome.added;
      all.position = outcome.position;
    }
    EXPECT_EQ(together.marked, all.marked);
    EXPECT_EQ(together.added, all.added);
    EXPECT_EQ(together.cycle, tracker_.status().current);
    if (!marks.empty()) {
      EXPECT_EQ(together.position, all.position);
    }
    EXPECT_EQ(sorted_records(tracker_), sorted_records(one_by_one));
  }
  EXPECT_GE(levels().size(), 3U);
  const TrackerState state = tracker_.exact_state();
  const TrackerState expected = one_by_one.exact_state();
  ASSERT_EQ(state.current_marks->filters().size(), expected.current_marks->filters().size());
  for (std::size_t i = 0; i < state.current_marks->filters().size(); ++i)
    EXPECT_EQ(bits_of(state.current_marks->filters()[i]), bits_of(expected.current_marks->filters()[i])) << i;
}

}  // namespace
}  // namespace spoor::tracker
