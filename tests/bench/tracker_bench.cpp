// What a mark, a lookup, a merge and a save cost. Figures drift with the machine: compare those of one
// run, and take medians (--benchmark_repetitions=9).
#include <benchmark/benchmark.h>

#include <random>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/cycle_frame.h"
#include "tracker/snapshot.h"
#include "tracker/tracker.h"

namespace {

using namespace spoor;
using tracker::Mark;
using tracker::MarkKind;

constexpr std::size_t items = 200'000;

const tracker::BloomShape& level_0() {
  static const auto shape = tracker::BloomShape::for_items(items, 0.1);
  return shape;
}

// Paths of this many components, of about 46 bytes at depth 5.
std::vector<Mark> paths(std::size_t depth, std::size_t count) {
  std::mt19937_64 engine(depth);
  std::vector<Mark> marks;
  for (std::size_t i = 0; i < count; ++i) {
    Mark mark{"bucket", MarkKind::dir};
    for (std::size_t d = 1; d < depth; ++d) mark.path += "/dir-" + std::to_string(engine() % 1'000'000);
    marks.push_back(std::move(mark));
  }
  return marks;
}

tracker::Tracker make_tracker(const base::Clock& clock) {
  return tracker::Tracker({.levels = tracker::LevelSchedule(items, 0.1)}, clock,
                          tracker::Tracker::born(tracker::InstanceId::random(), clock));
}

void normalise(benchmark::State& state) {
  const auto marks = paths(static_cast<std::size_t>(state.range(0)), 1000);
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(tracker::normalise_path(marks[at++ % marks.size()].path));
}
BENCHMARK(normalise)->Arg(3)->Arg(5)->Arg(8);

void hash_all_prefixes(benchmark::State& state) {
  const auto marks = paths(static_cast<std::size_t>(state.range(0)), 1000);
  std::size_t at = 0;
  for (auto _ : state) {
    tracker::for_each_prefix_hash(marks[at++ % marks.size()].path, [](const tracker::PathHash& hash, bool) {
      benchmark::DoNotOptimize(hash);
    });
  }
}
BENCHMARK(hash_all_prefixes)->Arg(3)->Arg(5)->Arg(8);

void mark_known(benchmark::State& state) {
  const base::SystemClock clock;
  auto tracker = make_tracker(clock);
  const auto marks = paths(static_cast<std::size_t>(state.range(0)), 1000);
  tracker.mark(marks);
  std::size_t at = 0;
  for (auto _ : state) benchmark::DoNotOptimize(tracker.mark({&marks[at++ % marks.size()], 1}));
}
BENCHMARK(mark_known)->Arg(3)->Arg(5)->Arg(8);

void mark_new(benchmark::State& state) {
  const base::SystemClock clock;
  auto tracker = make_tracker(clock);
  const auto marks = paths(static_cast<std::size_t>(state.range(0)), 20'000);
  std::size_t at = 0;
  std::uint64_t cycle = 1;
  for (auto _ : state) {
    benchmark::DoNotOptimize(tracker.mark({&marks[at], 1}));
    if (++at == marks.size()) {
      state.PauseTiming();
      at = 0;
      tracker.advance({++cycle});
      state.ResumeTiming();
    }
  }
}
BENCHMARK(mark_new)->Arg(3)->Arg(5)->Arg(8);

tracker::BloomFilter full_filter() {
  tracker::BloomFilter filter(level_0());
  for (std::size_t i = 0; i < items; ++i) filter.add(tracker::hash_path("key-" + std::to_string(i)));
  return filter;
}

void lookup(benchmark::State& state) {
  const auto filter = full_filter();
  const bool hit = state.range(0) != 0;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < items; ++i) keys.push_back((hit ? "key-" : "other-") + std::to_string(i));
  std::size_t at = 0;
  for (auto _ : state)
    benchmark::DoNotOptimize(filter.may_contain(tracker::hash_path(keys[at++ % keys.size()])));
}
BENCHMARK(lookup)->ArgName("hit")->Arg(1)->Arg(0);

void merge_filters(benchmark::State& state) {
  const auto filter = full_filter();
  tracker::BloomFilter merged(level_0());
  for (auto _ : state) {
    merged.merge(filter);
    benchmark::DoNotOptimize(merged.words().data());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(level_0().byte_count()));
}
BENCHMARK(merge_filters);

// Gives a tracker a current cycle and 16 of history, all with marks.
void fill(tracker::Tracker& tracker) {
  const auto marks = paths(3, 20'000);
  for (std::uint64_t cycle = 1; cycle <= 17; ++cycle) {
    tracker.advance({cycle});
    tracker.mark(marks);
  }
}

void copy_state_for_a_save(benchmark::State& state) {
  const base::SystemClock clock;
  auto tracker = make_tracker(clock);
  fill(tracker);
  for (auto _ : state) benchmark::DoNotOptimize(tracker.state());
}
BENCHMARK(copy_state_for_a_save);

void encode_snapshot(benchmark::State& state) {
  const base::SystemClock clock;
  auto tracker = make_tracker(clock);
  fill(tracker);
  const tracker::Snapshot snapshot{{"cluster", "node"}, 1, clock.wall_now(), tracker.state()};
  for (auto _ : state) benchmark::DoNotOptimize(tracker::encode_snapshot(snapshot));
}
BENCHMARK(encode_snapshot);

void answer_and_decode_a_cycle_request(benchmark::State& state) {
  const base::SystemClock clock;
  auto tracker = make_tracker(clock);
  fill(tracker);
  for (auto _ : state) {
    const auto answer = tracker.cycle({.current = {17}, .oldest = {1}, .instance = {}});
    benchmark::DoNotOptimize(
        peer::decode_cycle_frame(peer::encode_cycle_frame({{"cluster", "node"}, 0, 0, answer})));
  }
}
BENCHMARK(answer_and_decode_a_cycle_request);

}  // namespace
