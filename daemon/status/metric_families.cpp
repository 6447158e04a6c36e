#include "daemon/status/metric_families.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <iterator>

namespace spoor::daemon {

void MetricFamilies::begin_gauge(std::string name, std::string help) {
  families_.push_back({std::move(name), std::move(help), prometheus::MetricType::Gauge, {}});
}

void MetricFamilies::begin_counter(std::string name, std::string help) {
  families_.push_back({std::move(name), std::move(help), prometheus::MetricType::Counter, {}});
}

void MetricFamilies::add(double value, const Labels& labels) {
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  if (families_.back().type == prometheus::MetricType::Counter) {
    metric.counter.value = value;
  } else {
    metric.gauge.value = value;
  }
}

void MetricFamilies::gauge(std::string name, std::string help, double value) {
  begin_gauge(std::move(name), std::move(help));
  add(value);
}

void MetricFamilies::counter(std::string name, std::string help, double value) {
  begin_counter(std::move(name), std::move(help));
  add(value);
}

std::string MetricFamilies::text() const {
  std::vector<prometheus::MetricFamily> filled;
  std::ranges::copy_if(families_, std::back_inserter(filled),
                       [](const prometheus::MetricFamily& family) { return !family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(filled);
}

}  // namespace spoor::daemon
