// What it costs to answer a scan, to save, and to read either back: with full filters, and with sparse
// ones, which travel and rest packed.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/gather/cycle_frame.h"
#include "tests/bench/mark_sets.h"
#include "tracker/cycles/tracker.h"
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

tracker::CycleAnswer whole_answer(tracker::Tracker& tracker) {
  return tracker.cycle({.current = {cycles}, .oldest = {1}, .instance = {}});
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

void answer_a_cycle_request(benchmark::State& state) {
  const base::SystemClock clock;
  tracker::Tracker tracker({}, clock, filled_state(items(state)));
  for (auto _ : state) benchmark::DoNotOptimize(whole_answer(tracker));
}

void copy_state_for_a_save(benchmark::State& state) {
  const base::SystemClock clock;
  const tracker::Tracker tracker({}, clock, filled_state(items(state)));
  for (auto _ : state) benchmark::DoNotOptimize(tracker.state());
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

BENCHMARK(answer_a_cycle_request)->Apply(of_items);
BENCHMARK(copy_state_for_a_save)->Apply(of_items);
BENCHMARK(encode_frame)->Apply(of_items);
BENCHMARK(decode_frame)->Apply(of_items);
BENCHMARK(decode_and_merge_frame)->Apply(of_items);
BENCHMARK(encode_snapshot)->Apply(of_items);
BENCHMARK(decode_snapshot)->Apply(of_items);

}  // namespace
