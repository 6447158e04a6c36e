// Figures in Prometheus' text format.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/status/status_json.h"

namespace spoor::daemon {

// Families of figures, all of one moment, written by the Prometheus library. A family without a value is left
// out.
class MetricFamilies {
 public:
  using Labels = std::vector<std::pair<const char*, std::string>>;

  // Begins a family: the values added from here on belong to it. A name must not be used twice.
  void begin_gauge(std::string name, std::string help);
  void begin_counter(std::string name, std::string help);
  void add(double value, const Labels& labels = {});

  // A family of one value.
  void gauge(std::string name, std::string help, double value);
  void counter(std::string name, std::string help, double value);

  std::string text() const;

 private:
  std::vector<prometheus::MetricFamily> families_;
};

// The status, for Prometheus. Labels are from the configuration, or the position of a cycle among those kept:
// never from a path or a number that grows.
std::string status_metrics(const StatusSources& from, const MarkCounters& counters, bool is_ready);

std::string scan_metrics(const ScanFigures& scans);

}  // namespace spoor::daemon
