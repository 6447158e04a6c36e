// What it costs to merge full filters of level 0, beside reading the same bytes.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <numeric>
#include <vector>

#include "tests/bench/mark_sets.h"
#include "tracker/filter/mark_set.h"

namespace {

using namespace spoor;

constexpr std::size_t items = 200'000;

std::vector<tracker::MarkSet> sources(const benchmark::State& state) {
  return {static_cast<std::size_t>(state.range(0)), bench::mark_set_of(items)};
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
