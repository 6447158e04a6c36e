// Runs the micro-benchmarks and holds them against their peers. Each is repeated, in random order with the
// others, so that what else the machine does meets all of them alike.
#include <benchmark/benchmark.h>
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/bench/ratios.h"
#include "tests/bench/results.h"

namespace {

using namespace spoor;

constexpr auto comparisons = std::to_array<bench::Comparison>({
    {"mark_known/depth:3/real_time/threads:1", "textbook_mark_known/depth:3/real_time/threads:1"},
    {"mark_known/depth:5/real_time/threads:1", "textbook_mark_known/depth:5/real_time/threads:1"},
    {"mark_known/depth:8/real_time/threads:1", "textbook_mark_known/depth:8/real_time/threads:1"},
    {"mark_new/depth:3/real_time/threads:1", "textbook_mark_new/depth:3/real_time/threads:1"},
    {"mark_new/depth:5/real_time/threads:1", "textbook_mark_new/depth:5/real_time/threads:1"},
    {"mark_new/depth:8/real_time/threads:1", "textbook_mark_new/depth:8/real_time/threads:1"},
    {"textbook_mark_known/depth:5/real_time/threads:2", "textbook_mark_known/depth:5/real_time/threads:1"},
    {"textbook_mark_new/depth:5/real_time/threads:2", "textbook_mark_new/depth:5/real_time/threads:1"},
    {"mark_known/depth:3/real_time/threads:2", "mark_known/depth:3/real_time/threads:1"},
    {"mark_known/depth:5/real_time/threads:2", "mark_known/depth:5/real_time/threads:1", 1.9},
    {"mark_known/depth:8/real_time/threads:2", "mark_known/depth:8/real_time/threads:1"},
    {"mark_new/depth:3/real_time/threads:2", "mark_new/depth:3/real_time/threads:1"},
    {"mark_new/depth:5/real_time/threads:2", "mark_new/depth:5/real_time/threads:1", 1.6},
    {"mark_new/depth:8/real_time/threads:2", "mark_new/depth:8/real_time/threads:1"},
    {"mark_known_recorded/depth:5/real_time/threads:2", "mark_known_recorded/depth:5/real_time/threads:1"},
    {"mark_new_recorded/depth:5/real_time/threads:2", "mark_new_recorded/depth:5/real_time/threads:1"},
    {"mark_known_recorded/depth:5/real_time/threads:1", "mark_known/depth:5/real_time/threads:1"},
    {"mark_new_recorded/depth:5/real_time/threads:1", "mark_new/depth:5/real_time/threads:1"},
    {"mark_new/depth:5/real_time/threads:1", "hash_all_prefixes/depth:5"},
    {"filter_build<Spoor>", "filter_build<RocksDb>"},
    {"filter_build<Spoor>", "filter_build<LevelDb>"},
    {"filter_add_known", "filter_build<Spoor>"},
    {"filter_hit<Spoor>", "filter_hit<RocksDb>", 0.71},
    {"filter_hit<Spoor>", "filter_hit<LevelDb>", 1.0},
    {"filter_miss<Spoor>", "filter_miss<RocksDb>", 1.11},
    {"filter_miss<Spoor>", "filter_miss<LevelDb>", 1.0},
    {"merge_filters/sources:16", "read_filters/sources:16"},
    {"merge_filters/sources:100", "read_filters/sources:100"},
    {"merge_filters/sources:1000", "read_filters/sources:1000", 0.9},
    {"encode_frame/items:2000", "encode_frame/items:200000"},
    {"decode_frame/items:2000", "decode_frame/items:200000"},
    {"encode_snapshot/items:2000", "encode_snapshot/items:200000"},
    {"decode_snapshot/items:2000", "decode_snapshot/items:200000"},
});

bool is_given(int argc, char** argv, std::string_view flag) {
  return std::any_of(argv + 1, argv + argc, [&](std::string_view each) { return each.starts_with(flag); });
}

}  // namespace

int main(int argc, char** argv) {
  // The last of two equal flags counts.
  std::vector<std::string> arguments = {argv[0], "--benchmark_repetitions=5", "--benchmark_min_time=0.2",
                                        "--benchmark_enable_random_interleaving=true"};
  // Each for a moment: figures that say nothing.
  const bool is_short = argc > 1 && std::string_view(argv[1]) == "--short";
  if (is_short) arguments = {argv[0], "--benchmark_min_time=0.001"};
  const std::string results = bench::results_file("spoor_bench");
  const bool is_saved = !is_short && !is_given(argc, argv, "--benchmark_out=") &&
                        !is_given(argc, argv, "--benchmark_list_tests");
  if (is_saved) arguments.push_back("--benchmark_out=" + results);
  arguments.insert(arguments.end(), argv + (is_short ? 2 : 1), argv + argc);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  int count = static_cast<int>(pointers.size());
  benchmark::Initialize(&count, pointers.data());
  if (benchmark::ReportUnrecognizedArguments(count, pointers.data())) return 2;

  bench::RatioReporter reporter(comparisons);
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) return 1;
  if (is_saved) fmt::print("\nThe figures for machines are in {}\n", results);
}
