// What a benchmark took beside what its peer took in the same run. The speed of a machine drifts, a
// ratio within one run hardly does.
#pragma once

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/figures.h"

namespace spoor::bench {

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

}  // namespace spoor::bench
