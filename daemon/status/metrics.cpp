#include "daemon/status/metrics.h"

#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "daemon/status/status_metrics.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

// From a mark in memory to one that waits for a failing disk.
const prometheus::Histogram::BucketBoundaries duration_bounds_s = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10};

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void add_processor_time(MetricFamilies& families) {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return;
  families.add("process_cpu_seconds_total", "Processor time spent, by the program and for it.",
               seconds(usage.ru_utime) + seconds(usage.ru_stime));
}

void add_memory(MetricFamilies& families) {
  std::ifstream file("/proc/self/statm");
  std::uint64_t all_pages = 0;
  std::uint64_t resident_pages = 0;
  if (!(file >> all_pages >> resident_pages)) return;
  const auto page_bytes = static_cast<double>(::sysconf(_SC_PAGESIZE));
  families.add("process_virtual_memory_bytes", "Address space in use.",
               static_cast<double>(all_pages) * page_bytes);
  families.add("process_resident_memory_bytes", "Memory in use.",
               static_cast<double>(resident_pages) * page_bytes);
}

void add_descriptors(MetricFamilies& families) {
  std::error_code error;
  std::int64_t open = -1;  // without the descriptor that lists them
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++open;
  }
  if (!error) families.add("process_open_fds", "Open file descriptors.", open);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.add("process_max_fds", "File descriptors that may be open.", limit.rlim_cur);
  }
}

// The figures that Prometheus' own libraries export of their process, under the same names (`process_...`).
// Figures that the system does not report are left out.
std::string process_metrics(base::WallTime started_at) {
  MetricFamilies families;
  families.add("process_start_time_seconds", "When the daemon was started, since 1970.",
               std::chrono::duration<double>(started_at.time_since_epoch()).count());
  add_processor_time(families);
  add_memory(families);
  add_descriptors(families);
  return families.text();
}

}  // namespace

Metrics::Metrics(const HttpServer& server, ScanWatch& scans, const base::Clock& clock)
    : server_(server),
      scans_(scans),
      clock_(clock),
      started_at_(clock.wall_now()),
      requests_(prometheus::BuildCounter()
                    .Name("spoor_http_requests_total")
                    .Help("Requests answered, by route and status.")
                    .Register(registry_)),
      problems_(prometheus::BuildCounter()
                    .Name("spoor_http_problems_total")
                    .Help("Requests answered with a problem, by route and by its code.")
                    .Register(registry_)),
      body_bytes_(prometheus::BuildCounter()
                      .Name("spoor_http_request_body_bytes_total")
                      .Help("Bytes in the bodies of requests answered, by route.")
                      .Register(registry_)),
      durations_(prometheus::BuildHistogram()
                     .Name("spoor_http_request_duration_seconds")
                     .Help("From a request that was read to its answer, by route.")
                     .Register(registry_)) {}

asio::awaitable<HttpResponse> Metrics::measure(const HttpRequest& request, std::string_view route_name,
                                               asio::awaitable<HttpResponse> answering) {
  const base::SteadyTime begun = clock_.steady_now();
  HttpResponse response = co_await std::move(answering);
  const std::scoped_lock lock(mutex_);
  Route& counted = route(route_name);
  counted.body_bytes.Increment(static_cast<double>(request.body.size()));
  counted.duration.Observe(std::chrono::duration<double>(clock_.steady_now() - begun).count());
  count(counted, route_name, response.status, response.problem);
  co_return response;
}

void Metrics::refused(std::string_view route_name, unsigned status, const std::string& problem) {
  const std::scoped_lock lock(mutex_);
  count(route(route_name), route_name, status, problem);
}

Metrics::Route& Metrics::route(std::string_view name) {
  const auto found = routes_.find(name);
  if (found != routes_.end()) return found->second;
  const prometheus::Labels labels = {{"route", std::string(name)}};
  Route fresh{body_bytes_.Add(labels), durations_.Add(labels, duration_bounds_s), {}, {}};
  return routes_.emplace(name, std::move(fresh)).first->second;
}

void Metrics::count(Route& route, std::string_view name, unsigned status, const std::string& problem) {
  prometheus::Counter*& by_status = route.by_status[status];
  if (by_status == nullptr) {
    by_status = &requests_.Add({{"route", std::string(name)}, {"status", std::to_string(status)}});
  }
  by_status->Increment();
  if (problem.empty()) return;
  prometheus::Counter*& by_code = route.by_code[problem];
  if (by_code == nullptr) {
    by_code = &problems_.Add({{"route", std::string(name)}, {"code", problem}});
  }
  by_code->Increment();
}

std::string Metrics::connections() const {
  const HttpTotals& totals = server_.totals();
  MetricFamilies families;
  families.add("spoor_http_connections_open", "Open connections.", totals.open);
  families.add("spoor_http_connections_accepted_total", "Connections that were served.", totals.accepted);
  families.add("spoor_http_connections_refused_total", "Connections beyond limits.max_connections, refused.",
               totals.refused);
  families.add("spoor_http_tls_handshakes_failed_total",
               "Connections that ended before both sides had agreed on TLS.", totals.handshakes_failed);
  if (const auto end = server_.certificates_valid_until()) {
    families.add("spoor_tls_certificate_expiry_timestamp_seconds",
                 "When the first certificate of a listener ends to be valid.",
                 std::chrono::duration<double>(end->time_since_epoch()).count());
  }
  families.begin("spoor_http_unread_requests_total",
                 "Requests whose header was refused, by the code of the problem.");
  for (const auto& [code, count] : totals.unread()) families.add(count, {{"code", code}});
  return families.text();
}

asio::awaitable<HttpResponse> Metrics::scrape(std::function<std::string()> status) {
  co_await scans_.refresh();
  HttpResponse response;
  response.content_type = "text/plain; version=0.0.4; charset=utf-8";
  response.body = status() + scan_metrics(scans_.figures()) +
                  prometheus::TextSerializer().Serialize(registry_.Collect()) + connections() +
                  process_metrics(started_at_);
  co_return response;
}

}  // namespace spoor::daemon
