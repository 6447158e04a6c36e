// What a mark costs, and its parts.
#include <benchmark/benchmark.h>

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "tests/bench/marks.h"
#include "tracker/cycles/tracker.h"
#include "tracker/filter/bloom_filter.h"
#include "tracker/filter/hash.h"
#include "tracker/filter/level_schedule.h"
#include "tracker/paths/path.h"

namespace {

using namespace spoor;
using tracker::Mark;

constexpr std::size_t known_paths = 1000;
// Two threads at depth 8 add at most 140,000 items before either opens a new cycle, made for 200,000.
constexpr std::size_t cycle_paths = 10'000;
constexpr std::size_t taken_after = 256;

// What the threads of one benchmark mark.
class Node {
 public:
  tracker::Tracker& tracker() { return tracker_; }

  // Nothing the calling thread marked before is known in the cycle that is current afterwards.
  void open_cycle() { tracker_.advance({++cycle_}); }

 private:
  base::SystemClock clock_;
  tracker::Tracker tracker_{{}, clock_, tracker::Tracker::born(tracker::InstanceId::random(), clock_)};
  std::atomic<std::uint64_t> cycle_ = 1;
};

std::optional<Node> node;

void start(const benchmark::State&) { node.emplace(); }

void start_recording(const benchmark::State&) {
  node.emplace();
  node->tracker().start_recording();
}

std::vector<Mark> marks_of(const benchmark::State& state, std::size_t count) {
  return bench::random_marks(static_cast<std::size_t>(state.range(0)), count,
                             static_cast<std::size_t>(state.thread_index()));
}

void normalise(benchmark::State& state) {
  const auto marks = marks_of(state, known_paths);
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(tracker::normalise_path(marks[at++ % marks.size()].path));
}

void hash_all_prefixes(benchmark::State& state) {
  const auto marks = marks_of(state, known_paths);
  std::size_t at = 0;
  for (auto _ : state) {
    const tracker::PrefixHashes hashes(marks[at++ % marks.size()].path);
    benchmark::DoNotOptimize(hashes.all().data());
  }
}

// As the daemon does beside its markers.
void take_records(const benchmark::State& state, std::size_t marked) {
  if (state.thread_index() == 0 && marked % taken_after == 0) {
    benchmark::DoNotOptimize(node->tracker().take_records());
  }
}

template <bool is_recorded>
void mark_known(benchmark::State& state) {
  const auto marks = marks_of(state, known_paths);
  node->tracker().mark(marks);
  std::size_t at = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(node->tracker().mark({&marks[at++ % marks.size()], 1}));
    if constexpr (is_recorded) take_records(state, at);
  }
}

// Marks each of the paths, and renews the filter when all are known. mark(Mark) is the timed part.
template <class MarkOne, class Renew>
void mark_each_as_new(benchmark::State& state, MarkOne mark, Renew renew) {
  const auto marks = marks_of(state, cycle_paths);
  std::size_t at = 0;
  for (auto _ : state) {
    if (at == marks.size()) {
      state.PauseTiming();
      renew();
      at = 0;
      state.ResumeTiming();
    }
    mark(marks[at++]);
  }
}

template <bool is_recorded>
void mark_new(benchmark::State& state) {
  std::uint64_t added = 0;
  [[maybe_unused]] std::size_t marked = 0;
  const auto mark = [&](const Mark& each) {
    added += node->tracker().mark({&each, 1}).added;
    if constexpr (is_recorded) take_records(state, ++marked);
  };
  mark_each_as_new(state, mark, [] { node->open_cycle(); });
  // A few are taken for known by the filter.
  if (static_cast<double>(added) < 0.99 * static_cast<double>(state.iterations())) {
    state.SkipWithError("marks that should have been new were known");
  }
}

// Marks as a textbook makes them, in the same filter: each prefix is hashed from its start, a position is a
// remainder, each bit is set by an atomic OR, and a mutex keeps markers apart.
class TextbookMarks {
 public:
  explicit TextbookMarks(tracker::BloomShape shape) : shape_(shape), words_(shape.word_count()) {}

  // Returns whether any bit was new. Thread-safe.
  bool mark(std::string_view path) {
    const std::scoped_lock lock(mutex_);
    bool is_new = false;
    for (std::size_t end = path.find('/');; end = path.find('/', end + 1)) {
      is_new = add(tracker::hash_path(path.substr(0, end))) || is_new;
      if (end == std::string_view::npos) return is_new;
    }
  }

  void clear() {
    const std::scoped_lock lock(mutex_);
    for (auto& word : words_) word = 0;
  }

 private:
  bool add(const tracker::PathHash& hash) {
    bool is_new = false;
    for (std::uint64_t i = 0; i < shape_.hashes; ++i) {
      const std::uint64_t step = hash.words[2 + ((i + i % 2) % 4) / 2];
      const std::uint64_t at = (hash.words[i % 2] + i * step) % shape_.bits;
      const std::uint64_t bit = std::uint64_t{1} << (at % 64);
      is_new = (words_[at / 64].fetch_or(bit) & bit) == 0 || is_new;
    }
    return is_new;
  }

  const tracker::BloomShape shape_;
  std::mutex mutex_;
  std::vector<std::atomic<std::uint64_t>> words_;
};

std::optional<TextbookMarks> textbook;

void open_textbook(const benchmark::State&) {
  textbook.emplace(tracker::LevelSchedule(200'000, 0.1).shape(0));
}

void end(const benchmark::State&) {
  node.reset();
  textbook.reset();
}

void textbook_mark_known(benchmark::State& state) {
  const auto marks = marks_of(state, known_paths);
  for (const Mark& mark : marks) textbook->mark(mark.path);
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(textbook->mark(marks[at++ % marks.size()].path));
}

void textbook_mark_new(benchmark::State& state) {
  const auto mark = [](const Mark& each) { benchmark::DoNotOptimize(textbook->mark(each.path)); };
  mark_each_as_new(state, mark, [] { textbook->clear(); });
}

void at_depths(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("depth")->Arg(3)->Arg(5)->Arg(8);
}

void at_depth_5(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("depth")->Arg(5)->Setup(start_recording);
}

// The threads wait for each other: processor time would not show it.
void with_threads(benchmark::internal::Benchmark* benchmark) {
  benchmark->Teardown(end)->UseRealTime()->Threads(1)->Threads(2);
}

BENCHMARK(normalise)->Apply(at_depths);
BENCHMARK(hash_all_prefixes)->Apply(at_depths);
BENCHMARK(mark_known<false>)->Name("mark_known")->Apply(at_depths)->Setup(start)->Apply(with_threads);
BENCHMARK(mark_new<false>)->Name("mark_new")->Apply(at_depths)->Setup(start)->Apply(with_threads);
BENCHMARK(textbook_mark_known)->Apply(at_depths)->Setup(open_textbook)->Apply(with_threads);
BENCHMARK(textbook_mark_new)->Apply(at_depths)->Setup(open_textbook)->Apply(with_threads);
BENCHMARK(mark_known<true>)->Name("mark_known_recorded")->Apply(at_depth_5)->Apply(with_threads);
BENCHMARK(mark_new<true>)->Name("mark_new_recorded")->Apply(at_depth_5)->Apply(with_threads);

}  // namespace
