#include "tests/bench/ratios.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <ostream>

namespace spoor::bench {
namespace {

using Run = benchmark::BenchmarkReporter::Run;

double nanoseconds(double time, const Run& run) {
  return time / benchmark::GetTimeUnitMultiplier(run.time_unit) * 1e9;
}

bool is_median(const Run& run) {
  return run.run_type == Run::RT_Aggregate ? run.aggregate_name == "median" : run.repetitions <= 1;
}

}  // namespace

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

}  // namespace spoor::bench
