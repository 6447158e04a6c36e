// Trackers under random operations, against an oracle that forgets nothing and rounds nothing.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/tracker/samples.h"
#include "tracker/cycles/tracker.h"

namespace spoor::tracker {
namespace {

// Every mark ever made, with its cycle and its place in the order of all.
struct MadeMark {
  Mark mark;
  CycleId cycle;
};

// The paths for which a set must answer yes once it holds the mark.
std::vector<std::string> paths_of(const Mark& mark) {
  std::vector<std::string> paths;
  for (ComponentCursor at(mark.path); at.next();) {
    if (mark.kind != MarkKind::file || !at.is_last()) paths.emplace_back(at.prefix());
  }
  if (mark.kind == MarkKind::file && paths.empty()) paths.emplace_back();
  if (mark.kind == MarkKind::tree) paths.push_back(mark.path + "/anything/below");
  return paths;
}

bool holds(const MarkSet& marks, const Mark& mark) {
  for (const std::string& path : paths_of(mark)) {
    if (!contains(marks, path)) return false;
  }
  return true;
}

// A scanner and what it may rely on.
struct Scanner {
  Cursor cursor;
  std::size_t seen = 0;  // marks made before its last answer
};

class TrackerModel {
 public:
  explicit TrackerModel(support::Random& random) : random_(random) {
    options_ = small_options();
    options_.history_max = random.between(1, 6);
    tracker_ = std::make_unique<Tracker>(options_, clock_, Tracker::born(instance_of(1), clock_));
  }

  void step() {
    const CycleId before = tracker_->state().current;
    switch (random_.below(10)) {
      case 0:
      case 1:
      case 2:
      case 3:
        make_marks();
        break;
      case 4:
        advance();
        break;
      case 5:
      case 6:
        ask_as_a_scanner();
        break;
      case 7:
        ask_with_hostile_numbers();
        break;
      case 8:
        ask_for_one_path();
        break;
      default:
        restart();
    }
    const TrackerState state = tracker_->state();
    ASSERT_GE(state.current, before) << "a cycle went back";
    ASSERT_LE(state.history.size(), options_.history_max);
  }

  // Whatever the history: each mark that is kept is found in the state, in the span of its cycle.
  void check_state() const {
    const TrackerState state = tracker_->state();
    ASSERT_EQ(state.oldest_kept, CycleId{1}) << "nothing is dropped";
    std::map<std::uint64_t, const MarkSet*> spans;  // by the last cycle
    for (const ClosedSpan& span : state.history) {
      ASSERT_LT(span.last, state.current);
      ASSERT_FALSE(span.marks->empty()) << "an empty cycle is stored";
      spans[span.last.value] = span.marks.get();
    }
    spans[state.current.value] = state.current_marks.get();
    std::set<std::uint64_t> marked;
    for (const MadeMark& made : made_) {
      marked.insert(made.cycle.value);
      const auto span = spans.lower_bound(made.cycle.value);
      ASSERT_TRUE(span != spans.end()) << "cycle " << made.cycle.value << " is gone";
      ASSERT_TRUE(holds(*span->second, made.mark)) << made.mark.path << " in cycle " << made.cycle.value;
    }
    for (const ClosedSpan& span : state.history)
      ASSERT_TRUE(marked.contains(span.last.value)) << "nobody marked in it";
  }

 private:
  void make_marks() {
    std::vector<Mark> marks;
    for (std::uint64_t n = random_.between(1, 4); n > 0; --n) {
      marks.push_back({random_path(random_, 5), static_cast<MarkKind>(random_.below(3))});
    }
    const MarkOutcome outcome = tracker_->mark(marks);
    ASSERT_EQ(outcome.marked, marks.size());
    ASSERT_EQ(outcome.cycle, tracker_->state().current);
    for (const Mark& mark : marks) made_.push_back({mark, outcome.cycle});
  }

  void advance() {
    const CycleId current = tracker_->state().current;
    const CycleId to = any_cycle_near(current);
    ASSERT_EQ(tracker_->advance(to), to > current && to.value <= CycleId::request_max);
  }

  // The protocol: from the stored cursor, into the current cycle, the next one, or only to read.
  void ask_as_a_scanner() {
    Scanner& scanner = scanners_[random_.below(3)];
    CycleRequest request;
    const std::uint64_t current = tracker_->state().current.value;
    request.current = {random_.one_in(4) ? 0 : current + random_.below(3)};
    request.oldest = scanner.cursor.cycle;
    request.instance = scanner.cursor.instance;
    const CycleAnswer answer = tracker_->cycle(request);
    if (!answer.gap) {
      // The first answer after a mark holds it.
      for (std::size_t at = scanner.seen; at < made_.size(); ++at) {
        ASSERT_TRUE(holds(answer.marks, made_[at].mark))
            << made_[at].mark.path << " was made and not answered";
      }
      ASSERT_FALSE(scanner.cursor.instance.is_none()) << "a first request is a gap";
    }
    check_answer(request, answer);
    scanner.cursor = answer.next();
    scanner.seen = made_.size();
  }

  void ask_with_hostile_numbers() {
    CycleRequest request;
    const CycleId current = tracker_->state().current;
    request.oldest = any_cycle_near(current);
    request.current =
        random_.one_in(4) ? CycleId{random_.next() | (CycleId::request_max << 1U)} : any_cycle_near(current);
    request.instance = random_.one_in(4) ? instance_of(2) : instance_of(1);
    request.marks_wanted = !random_.one_in(8);
    const CycleAnswer answer = tracker_->cycle(request);
    ASSERT_LE(answer.current.value, CycleId::request_max);
    if (request.instance != instance_of(1)) {
      ASSERT_TRUE(answer.gap);
    }
    if (request.marks_wanted) check_answer(request, answer);
  }

  // Covers everything since `oldest`, or says gap; and a gap covers everything kept.
  void check_answer(const CycleRequest& request, const CycleAnswer& answer) const {
    const CycleId oldest_kept = tracker_->state().oldest_kept;
    const CycleId from = answer.gap ? oldest_kept : request.oldest;
    for (const MadeMark& made : made_) {
      if (made.cycle < from) continue;
      ASSERT_TRUE(holds(answer.marks, made.mark)) << made.mark.path << " of cycle " << made.cycle.value
                                                  << " is not in the answer from " << from.value;
    }
    if (request.oldest < oldest_kept) {
      ASSERT_TRUE(answer.gap);
    }
  }

  void ask_for_one_path() {
    if (made_.empty()) return;
    const MadeMark& made = random_.pick(made_);
    const DirtyAnswer answer = tracker_->dirty(random_.pick(paths_of(made.mark)), {});
    if (made.cycle < answer.oldest_kept) return;
    ASSERT_TRUE(answer.latest) << made.mark.path;
    ASSERT_GE(*answer.latest, made.cycle);
  }

  void restart() {
    const TrackerState state = tracker_->state();
    auto loaded = decode_snapshot(encode_snapshot(snapshot_of(state)));
    ASSERT_TRUE(loaded) << loaded.error().message;
    tracker_ = std::make_unique<Tracker>(options_, clock_, std::move(loaded->state));
    ASSERT_TRUE(bytes_of(tracker_->state()) == bytes_of(state));
  }

  CycleId any_cycle_near(CycleId current) {
    switch (random_.below(12)) {
      case 0:
        return {0};
      case 1:
        return {1};
      case 2:
        return {current.value +
                (random_.one_in(20) ? std::uint64_t{1} << random_.between(30, 40) : random_.below(1'000))};
      default:
        return {current.value > 8 ? current.value - 8 + random_.below(12) : random_.below(12)};
    }
  }

  support::Random& random_;
  fakes::ManualClock clock_;
  Tracker::Options options_;
  std::unique_ptr<Tracker> tracker_;
  std::vector<MadeMark> made_;
  Scanner scanners_[3];
};

TEST(TrackerModelTest, RandomOperations_KeepAllMarksOfKeptCycles) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 60; ++round) {
    TrackerModel model(random);
    for (int step = 0; step < 150; ++step) {
      model.step();
      if (::testing::Test::HasFatalFailure()) return;
      if (step % 10 == 0) model.check_state();
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

}  // namespace
}  // namespace spoor::tracker
