// Figures in Prometheus' text format.
#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/status/status_json.h"

namespace spoor::daemon {

// Families of figures, all of one moment, written by the Prometheus library. A name that ends with `_total`
// is that of a counter, any other that of a gauge. A family without a value is left out.
class MetricFamilies {
 public:
  using Labels = std::vector<std::pair<const char*, std::string>>;

  // Begins a family: the values added from here on belong to it. A name must not be used twice.
  void begin(std::string name, std::string help);
  template <class Number>
  void add(const Number& value, const Labels& labels = {}) {
    add_value(static_cast<double>(value), labels);
  }

  // A family of one value.
  template <class Number>
  void add(std::string name, std::string help, const Number& value) {
    begin(std::move(name), std::move(help));
    add(value);
  }

  std::string text() const;

 private:
  void add_value(double value, const Labels& labels);

  std::vector<prometheus::MetricFamily> families_;
};

// The status, for Prometheus. Labels are from the configuration, or the position of a cycle among those kept:
// never from a path or a number that grows.
std::string status_metrics(const StatusSources& from, const MarkCounters& counters, bool is_ready);

std::string scan_metrics(const ScanFigures& scans);

}  // namespace spoor::daemon
