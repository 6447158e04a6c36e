// What it costs to pack a sparse filter, and to unpack it.
#include <benchmark/benchmark.h>

#include <vector>

#include "tests/bench/mark_sets.h"
#include "tracker/filter/packed_bits.h"

namespace {

using namespace spoor;

tracker::MarkSet marks_of(const benchmark::State& state) {
  return bench::mark_set_of(static_cast<std::size_t>(state.range(0)));
}

void pack(benchmark::State& state) {
  const auto marks = marks_of(state);
  const auto& filter = marks.filters()[0];
  for (auto _ : state) {
    benchmark::DoNotOptimize(tracker::PackedBits::pack(filter.words(), filter.shape().byte_count()));
  }
}

void unpack(benchmark::State& state) {
  const auto marks = marks_of(state);
  const auto& filter = marks.filters()[0];
  const auto packed = tracker::PackedBits::pack(filter.words(), filter.shape().byte_count());
  std::vector<std::uint64_t> words(filter.words().size());
  for (auto _ : state) {
    packed->unpack_into(words);
    benchmark::DoNotOptimize(words.data());
  }
  state.counters["bytes"] = static_cast<double>(packed->bytes().size());
}

void parse(benchmark::State& state) {
  const auto marks = marks_of(state);
  const auto& filter = marks.filters()[0];
  const auto packed = tracker::PackedBits::pack(filter.words(), filter.shape().byte_count());
  for (auto _ : state) {
    benchmark::DoNotOptimize(tracker::PackedBits::parse(packed->bytes(), filter.shape().bits));
  }
}

void of_few_items(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("items")->Arg(2'000)->Arg(20'000);
}

BENCHMARK(pack)->Apply(of_few_items);
BENCHMARK(unpack)->Apply(of_few_items);
BENCHMARK(parse)->Apply(of_few_items);

}  // namespace
