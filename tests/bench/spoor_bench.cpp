// Runs the micro-benchmarks and holds each against its peer in the same run: the speed of a machine drifts, a
// ratio within one run hardly does. Each is repeated, in random order with the others, so that what else the
// machine does meets all of them alike.
#include <benchmark/benchmark.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/bench_support.h"

namespace {

using namespace spoor;
using bench::Figures;

using Run = benchmark::BenchmarkReporter::Run;

double nanoseconds(double time, const Run& run) {
  return time / benchmark::GetTimeUnitMultiplier(run.time_unit) * 1e9;
}

bool is_median(const Run& run) {
  return run.run_type == Run::RT_Aggregate ? run.aggregate_name == "median" : run.repetitions <= 1;
}

struct Comparison {
  std::string_view name;
  std::string_view peer;  // another benchmark of the run
  double speed_min = 0;   // that is wanted; 0: none
};

// Shows the median of each benchmark on the console, and at the end the comparisons whose both sides
// were run. What counts is processor time; real time where either side has several threads, which may
// wait for each other.
class RatioReporter : public benchmark::ConsoleReporter {
 public:
  // The comparisons must outlive the reporter.
  explicit RatioReporter(std::span<const Comparison> comparisons);

  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Measured {
    Figures processor_ns;
    Figures real_ns;
    bool has_threads = false;       // several
    std::optional<double> fp_rate;  // the counter of that name
  };

  const Measured* find(std::string_view name) const;
  std::string line(const Comparison& comparison) const;

  std::span<const Comparison> comparisons_;
  std::map<std::string, Measured, std::less<>> measured_;
};

RatioReporter::RatioReporter(std::span<const Comparison> comparisons)
    : ConsoleReporter(::isatty(STDOUT_FILENO) == 1 ? OO_Color : OO_None), comparisons_(comparisons) {}

void RatioReporter::ReportRuns(const std::vector<Run>& runs) {
  for (const Run& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.error_occurred) continue;
    Measured& measured = measured_[run.run_name.str()];
    measured.processor_ns.add(nanoseconds(run.GetAdjustedCPUTime(), run));
    measured.real_ns.add(nanoseconds(run.GetAdjustedRealTime(), run));
    measured.has_threads = run.threads > 1;
    if (const auto rate = run.counters.find("fp_rate"); rate != run.counters.end()) {
      measured.fp_rate = rate->second.value;
    }
  }
  std::vector<Run> shown;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(shown),
               [](const Run& run) { return is_median(run) || run.error_occurred; });
  if (!shown.empty()) ConsoleReporter::ReportRuns(shown);
}

const RatioReporter::Measured* RatioReporter::find(std::string_view name) const {
  const auto found = measured_.find(name);
  return found == measured_.end() ? nullptr : &found->second;
}

// Empty where a side is missing.
std::string RatioReporter::line(const Comparison& comparison) const {
  const Measured* own = find(comparison.name);
  const Measured* peer = find(comparison.peer);
  if (own == nullptr || peer == nullptr) return {};
  const bool is_real = own->has_threads || peer->has_threads;
  const Figures& ns = is_real ? own->real_ns : own->processor_ns;
  const double peer_ns = is_real ? peer->real_ns.median() : peer->processor_ns.median();
  const auto rate = [](const Measured* side) {
    return side->fp_rate ? fmt::format("{:.2f} %", *side->fp_rate * 100) : std::string();
  };
  const double speed = peer_ns / ns.median();
  const std::string wanted =
      comparison.speed_min == 0
          ? std::string()
          : fmt::format("{:.2f} {}", comparison.speed_min, speed >= comparison.speed_min ? "met" : "missed");
  return fmt::format("{:<48}{:>11.1f}{:>7.0f} %{:>9}  {:<48}{:>11.1f}{:>9}{:>8.2f}  {}\n", comparison.name,
                     ns.median(), (ns.max() - ns.min()) / ns.median() * 100, rate(own), comparison.peer,
                     peer_ns, rate(peer), speed, wanted);
}

void RatioReporter::Finalize() {
  std::string lines;
  for (const Comparison& comparison : comparisons_) lines += line(comparison);
  if (lines.empty()) return;
  GetOutputStream() << fmt::format(
                           "\nSpeed: how many times as fast as its peer.\n{:<48}{:>11}{:>9}{:>9}  "
                           "{:<48}{:>11}{:>9}{:>8}  {}\n",
                           "", "ns", "spread", "false", "peer", "ns", "false", "speed", "wanted")
                    << lines << std::flush;
}

constexpr auto comparisons = std::to_array<Comparison>({
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

  RatioReporter reporter(comparisons);
  if (benchmark::RunSpecifiedBenchmarks(&reporter) == 0) return 1;
  if (is_saved) fmt::print("\nThe figures for machines are in {}\n", results);
}
