// What it costs to encode the answer to a scan and a snapshot, and to read either back: with full filters,
// and with sparse ones, which travel and rest packed; and to merge filters.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/gather/cycle_frame.h"
#include "tests/bench/marks.h"
#include "tracker/cycles/tracker.h"
#include "tracker/filter/mark_set.h"
#include "tracker/storage/snapshot.h"

namespace {

using namespace spoor;

constexpr std::uint64_t cycles = 17;  // the current one, and 16 of history

std::size_t items(const benchmark::State& state) { return static_cast<std::size_t>(state.range(0)); }

// Of a tracker with so many items in each cycle.
tracker::TrackerState filled_state(std::size_t items) {
  auto state = tracker::Tracker::born(tracker::InstanceId::random(), base::SystemClock());
  state.current_marks = std::make_shared<const tracker::MarkSet>(bench::mark_set_of(items));
  state.current = {cycles};
  for (std::uint64_t cycle = 1; cycle < cycles; ++cycle) {
    state.history.push_back({{cycle}, state.current_marks});
  }
  return state;
}

peer::CycleFrame frame_of(std::size_t items) {
  tracker::CycleAnswer answer;
  answer.instance = tracker::InstanceId::random();
  answer.current = {cycles};
  answer.marks = bench::mark_set_of(items);
  return {{"cluster", "node"}, 0, 0, std::move(answer)};
}

tracker::Snapshot snapshot_of(std::size_t items) {
  return {{"cluster", "node"}, 1, base::SystemClock().wall_now(), filled_state(items)};
}

template <class Value, class Encode>
void encode(benchmark::State& state, const Value& value, Encode encode_one) {
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string encoded = encode_one(value);
    benchmark::DoNotOptimize(encoded.data());
    bytes = encoded.size();
  }
  state.counters["bytes"] = static_cast<double>(bytes);
}

template <class Decode>
void decode(benchmark::State& state, const std::string& encoded, Decode decode_one) {
  if (!decode_one(encoded)) state.SkipWithError("what was encoded can't be decoded");
  for (auto _ : state) benchmark::DoNotOptimize(decode_one(encoded));
  state.counters["bytes"] = static_cast<double>(encoded.size());
}

void encode_frame(benchmark::State& state) {
  encode(state, frame_of(items(state)), peer::encode_cycle_frame);
}

void decode_frame(benchmark::State& state) {
  decode(state, peer::encode_cycle_frame(frame_of(items(state))), peer::decode_cycle_frame);
}

void decode_and_merge_frame(benchmark::State& state) {
  const std::string encoded = peer::encode_cycle_frame(frame_of(items(state)));
  tracker::MarkSet merged = bench::mark_set_of(items(state));
  for (auto _ : state) {
    merged.merge(peer::decode_cycle_frame(encoded)->answer.marks);
    benchmark::DoNotOptimize(merged);
  }
}

void encode_snapshot(benchmark::State& state) {
  encode(state, snapshot_of(items(state)), tracker::encode_snapshot);
}

void decode_snapshot(benchmark::State& state) {
  decode(state, tracker::encode_snapshot(snapshot_of(items(state))), tracker::decode_snapshot);
}

void of_items(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("items")->Arg(2'000)->Arg(200'000);
}

BENCHMARK(encode_frame)->Apply(of_items);
BENCHMARK(decode_frame)->Apply(of_items);
BENCHMARK(decode_and_merge_frame)->Apply(of_items);
BENCHMARK(encode_snapshot)->Apply(of_items);
BENCHMARK(decode_snapshot)->Apply(of_items);

// --- merging full filters of level 0, beside reading the same bytes ---

constexpr std::size_t full_filter_items = 200'000;

std::vector<tracker::MarkSet> sources(const benchmark::State& state) {
  return {static_cast<std::size_t>(state.range(0)), bench::mark_set_of(full_filter_items)};
}

void count_bytes(benchmark::State& state, const std::vector<tracker::MarkSet>& from) {
  const auto bytes = static_cast<std::int64_t>(from.size() * from[0].filters()[0].shape().byte_count());
  state.SetBytesProcessed(state.iterations() * bytes);
}

void merge_filters(benchmark::State& state) {
  const auto from = sources(state);
  for (auto _ : state) {
    tracker::MarkSet merged;
    for (const tracker::MarkSet& source : from) merged.merge(source);
    benchmark::DoNotOptimize(merged);
  }
  count_bytes(state, from);
}

void read_filters(benchmark::State& state) {
  const auto from = sources(state);
  for (auto _ : state) {
    std::uint64_t sum = 0;
    for (const tracker::MarkSet& source : from) {
      const auto words = source.filters()[0].words();
      sum = std::accumulate(words.begin(), words.end(), sum);
    }
    benchmark::DoNotOptimize(sum);
  }
  count_bytes(state, from);
}

// The cycles a tracker keeps, a hundred peers, and more than a processor's caches hold.
void of_sources(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("sources")->Arg(16)->Arg(100)->Arg(1000);
}

BENCHMARK(merge_filters)->Apply(of_sources);
BENCHMARK(read_filters)->Apply(of_sources);

}  // namespace
