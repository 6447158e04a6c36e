// What holds however threads interleave. No test here waits for a time: the threads race in rounds,
// each begun by all together, so that they meet even where there are fewer cores than threads; what
// came of it is checked when they are done.

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "tests/support/sanitizer.h"
#include "tests/tracker/samples.h"
#include "tracker/cycles/tracker.h"

namespace spoor::tracker {
namespace {

constexpr std::size_t markers = 2;
// The thread sanitizer sees a race without a bad end; some tests take the square of the rounds.
constexpr std::size_t rounds = support::is_sanitized ? 250 : 1'000;
constexpr std::size_t marks_a_round = 4;
constexpr std::size_t marks_each = rounds * marks_a_round;

using Runner = std::function<void(std::size_t round)>;

// Runs each of the functions once a round, in a thread of its own.
void race(const std::vector<Runner>& runners) {
  std::barrier start(static_cast<std::ptrdiff_t>(runners.size()));
  std::vector<std::thread> threads;
  for (const auto& run : runners) {
    threads.emplace_back([&] {
      for (std::size_t round = 0; round < rounds; ++round) {
        start.arrive_and_wait();
        run(round);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Paths that share nothing with each other: a chain can only be whole by its own mark.
std::string own_path(std::size_t marker, std::size_t number) {
  return fmt::format("{0}-{1}/a{1}/b{1}/c{1}/d{1}/e{1}", marker, number);
}

bool holds_whole_chain(const MarkSet& marks, const std::string& path) {
  return std::ranges::all_of(PrefixHashes(path).all(),
                             [&](const PathHash& hash) { return marks.filters_may_contain(hash); });
}

// What each marker has of each of its marks.
template <class Value>
using OfMarks = std::vector<std::vector<Value>>;

template <class Value>
OfMarks<Value> of_marks() {
  return OfMarks<Value>(markers, std::vector<Value>(marks_each));
}

// Calls make(marker, number) for some numbers in each round, in the end for each.
template <class Make>
Runner marker(std::size_t at, Make make) {
  return [=](std::size_t round) {
    for (std::size_t number = round * marks_a_round; number < (round + 1) * marks_a_round; ++number)
      make(at, number);
  };
}

class TrackerConcurrencyTest : public ::testing::Test {
 protected:
  TrackerConcurrencyTest() {
    options_.levels = LevelSchedule(400, 1e-6);
    options_.history_max = 1'000'000;  // keep everything, to look at it afterwards
    options_.memory_bytes_max = std::uint64_t{1} << 40U;
  }

  fakes::ManualClock clock_;
  Tracker::Options options_;
};

TEST_F(TrackerConcurrencyTest, MarkDuringAdvance_LandsInOneCycle) {
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  auto told = of_marks<CycleId>();
  const auto make = [&](std::size_t at, std::size_t number) {
    told[at][number] = mark(tracker, {dir(own_path(at, number))}).cycle;
  };
  std::uint64_t to = 1;
  race({marker(0, make), marker(1, make), [&](std::size_t) {
          for (std::size_t i = 0; i < marks_a_round; ++i) tracker.advance({++to});
        }});

  const TrackerState state = tracker.state();
  std::map<CycleId, const MarkSet*> cycles{{state.current, state.current_marks.get()}};
  for (const ClosedSpan& span : state.history) cycles[span.last] = span.marks.get();
  for (std::size_t at = 0; at < markers; ++at) {
    for (std::size_t number = 0; number < marks_each; ++number) {
      const CycleId cycle = told[at][number];
      ASSERT_TRUE(cycles.contains(cycle));
      ASSERT_TRUE(holds_whole_chain(*cycles[cycle], own_path(at, number)))
          << own_path(at, number) << " in cycle " << cycle.value;
    }
  }
}

// Scanners that ask while others mark and advance: a mark acknowledged before a request began is in
// its answer, or was in an earlier one that ran while the mark was made.
TEST_F(TrackerConcurrencyTest, RequestAfterAcknowledgement_ReturnsTheMark) {
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  std::atomic<std::size_t> requests_begun = 0;
  struct Span {
    std::size_t before = 0;  // requests begun before the mark
    std::size_t after = 0;   // and before its acknowledgement
  };
  auto spans = of_marks<Span>();
  const auto make = [&](std::size_t at, std::size_t number) {
    spans[at][number].before = requests_begun;
    mark(tracker, {dir(own_path(at, number))});
    spans[at][number].after = requests_begun;
  };
  // The scanner under test: it opens a cycle, or asks in the one another scanner opened.
  std::vector<MarkSet> answers;
  bool any_gap = false;
  Cursor cursor{instance_of(1), {1}};
  const auto ask = [&](std::size_t turn) {
    CycleRequest request;
    request.current = {cursor.cycle.value + turn % 2};
    request.oldest = cursor.cycle;
    request.instance = cursor.instance;
    ++requests_begun;
    CycleAnswer answer = tracker.cycle(request);
    any_gap = any_gap || answer.gap;
    cursor = answer.next();
    answers.push_back(std::move(answer.marks));
  };
  const auto other_scanner = [&](std::size_t) {
    tracker.cycle({next(tracker.state().current), {1}, instance_of(1), false});
  };
  race({marker(0, make), marker(1, make), ask, other_scanner});
  ask(0);  // behind the last acknowledgement

  EXPECT_FALSE(any_gap);
  for (std::size_t at = 0; at < markers; ++at) {
    for (std::size_t number = 0; number < marks_each; ++number) {
      // The request that ran when the mark began counts too; number `after` began behind the
      // acknowledgement.
      const Span& span = spans[at][number];
      const std::size_t first = span.before == 0 ? 0 : span.before - 1;
      bool found = false;
      for (std::size_t asked = first; asked <= span.after && !found; ++asked) {
        found = holds_whole_chain(answers.at(asked), own_path(at, number));
      }
      ASSERT_TRUE(found) << own_path(at, number) << " in none of the answers " << first << " to "
                         << span.after;
    }
  }
}

// Levels open while others mark: whatever was told to be marked is there.
TEST_F(TrackerConcurrencyTest, MarksWhileLevelsOpen_AreAllKept) {
  options_.levels = LevelSchedule(5, 1e-6);
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  const auto make = [&](std::size_t at) {
    return [&, at](std::size_t round) { mark(tracker, {dir(own_path(at, round))}); };
  };
  race({make(0), make(1)});
  const TrackerState state = tracker.state();
  EXPECT_GT(state.current_marks->filters().size(), 5U);
  for (std::size_t at = 0; at < markers; ++at) {
    for (std::size_t number = 0; number < rounds; ++number) {
      ASSERT_TRUE(holds_whole_chain(*state.current_marks, own_path(at, number))) << own_path(at, number);
    }
  }
}

// ancestor 19: else the second could be acknowledged, and lost with the first, whose record is not written
// yet. That the record of the first is counted before its bits are set, the types require (Counted).
TEST_F(TrackerConcurrencyTest, DuplicateMark_PositionIsNotBeforeRecordedMark) {
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  auto outcomes = of_marks<MarkOutcome>();
  const auto make = [&](std::size_t at, std::size_t number) {
    outcomes[at][number] = mark(tracker, {dir(own_path(0, number))});
  };
  race({marker(0, make), marker(1, make)});
  std::size_t known = 0;
  for (std::size_t number = 0; number < marks_each; ++number) {
    const MarkOutcome& one = outcomes[0][number];
    const MarkOutcome& other = outcomes[1][number];
    ASSERT_TRUE(one.added + other.added >= 1) << own_path(0, number);
    if (one.added + other.added == 2) continue;
    ++known;
    const auto& [did, did_not] = one.added == 1 ? std::tie(one, other) : std::tie(other, one);
    ASSERT_GE(did_not.position, did.position) << own_path(0, number);
  }
  EXPECT_GT(known, 0U);
}

// What a copy of the state holds beyond its position was recorded before the copy was made.
TEST_F(TrackerConcurrencyTest, StateDuringMarks_MatchesItsPosition) {
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  auto positions = of_marks<JournalPosition>();
  const auto make = [&](std::size_t at, std::size_t number) {
    positions[at][number] = mark(tracker, {dir(own_path(at, number))}).position;
  };
  struct Taken {
    TrackerState state;
    JournalPosition after = 0;
    bool is_exact = false;
  };
  std::vector<Taken> taken;
  race({marker(0, make), marker(1, make), [&](std::size_t round) {
          Taken state{round % 2 == 0 ? tracker.exact_state() : tracker.state(), 0, round % 2 == 0};
          state.after = state.is_exact ? state.state.position : tracker.position();
          if (round % 20 < 2) taken.push_back(std::move(state));
        }});
  for (const Taken& each : taken) {
    for (std::size_t at = 0; at < markers; ++at) {
      for (std::size_t number = 0; number < marks_each; number += 7) {
        const JournalPosition behind = positions[at][number];
        const bool holds = holds_whole_chain(*each.state.current_marks, own_path(at, number));
        const bool must = behind <= each.state.position;
        const bool may = behind <= each.after;
        ASSERT_TRUE(must ? holds : may || !holds) << own_path(at, number);
      }
    }
  }
}

// Else both markers may share one processor all the time, and leave their records in one place.
void stay_on_processor(std::size_t number) {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  CPU_SET(number % std::max(1U, std::thread::hardware_concurrency()), &processors);
  ::pthread_setaffinity_np(::pthread_self(), sizeof(processors), &processors);
}

// Records are taken processor by processor; but those before a state's position come first.
TEST_F(TrackerConcurrencyTest, StateAndLaterRecords_HoldAllMarks) {
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  tracker.start_recording();
  std::vector<TrackerState> states;
  const auto make = [&](std::size_t at, std::size_t number) {
    stay_on_processor(at);
    mark(tracker, {dir(own_path(at, number))});
  };
  race({marker(0, make), marker(1, make), [&](std::size_t round) {
          TrackerState state = round % 2 == 0 ? tracker.exact_state() : tracker.state();
          if (round % 50 < 2) states.push_back(std::move(state));
        }});
  const auto recorded = tracker.take_records();
  ASSERT_EQ(recorded.start + recorded.records.size(), tracker.position());
  for (const TrackerState& state : states) {
    Tracker replayed(options_, clock_, state);
    JournalPosition position = recorded.start;
    for (std::string_view rest = recorded.records; !rest.empty();) {
      const std::size_t before = rest.size();
      const auto record = take_record(rest).value();
      const auto* its = std::get_if<Mark>(&record);
      if (position >= state.position && its != nullptr) replayed.mark({its, 1});
      position += before - rest.size();
    }
    const auto marks = replayed.state().current_marks;
    for (std::size_t at = 0; at < markers; ++at) {
      for (std::size_t number = 0; number < marks_each; number += 3) {
        ASSERT_TRUE(holds_whole_chain(*marks, own_path(at, number))) << own_path(at, number);
      }
    }
  }
}

// Everything at once, for the thread sanitizer; whatever a state says must be whole.
TEST_F(TrackerConcurrencyTest, StatesDuringMarksAndAdvances_AreConsistent) {
  options_.history_max = 4;
  Tracker tracker(options_, clock_, Tracker::born(instance_of(1), clock_));
  const auto make = [&](std::size_t at) {
    return [&, at](std::size_t round) {
      mark(tracker, {dir(own_path(at, round)), tree(fmt::format("tree/{}", round % 50))});
    };
  };
  bool whole = true;
  race({make(0), make(1), [&](std::size_t round) { tracker.advance({2 * round}); },
        [&](std::size_t round) { tracker.advance({2 * round + 1}); },
        [&](std::size_t) {
          const JournalPosition position = tracker.position();
          whole = whole && decode_snapshot(encode_snapshot(snapshot_of(tracker.state()))).has_value();
          whole = whole && tracker.position() >= position;
          tracker.status();
          tracker.dirty("tree/1", {});
          clock_.advance(std::chrono::milliseconds(1));
        }});
  EXPECT_TRUE(whole);
  const CycleAnswer answer = tracker.cycle({{}, {1}, instance_of(1), true});
  EXPECT_FALSE(answer.gap);
  for (std::size_t at = 0; at < markers; ++at) {
    for (std::size_t number = 0; number < rounds; ++number)
      ASSERT_TRUE(holds_whole_chain(answer.marks, own_path(at, number))) << own_path(at, number);
  }
}

}  // namespace
}  // namespace spoor::tracker
