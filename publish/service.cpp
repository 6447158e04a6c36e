#include "publish/service.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "publish/sink.h"

namespace spoor::publish {
namespace {

constexpr std::chrono::milliseconds pause_first{1'000};
constexpr std::chrono::milliseconds pause_max{60'000};
constexpr std::chrono::seconds asked_pause_max = std::chrono::hours(1);
constexpr std::size_t requests_max = 100;  // one for each event: a crash repeats no more than these

std::size_t batch_of(const config::Sink& sink) {
  const bool is_http = sink.url.starts_with("http");
  const bool is_structured = is_http && sink.format == config::EventFormat::structured;
  return is_structured ? std::min<std::size_t>(sink.batch, requests_max) : sink.batch;
}

}  // namespace

std::chrono::milliseconds next_pause(std::chrono::milliseconds last, bool has_stored) {
  return has_stored ? pause_first : std::clamp(2 * last, pause_first, pause_max);
}

std::chrono::milliseconds wait_for_attempt(std::chrono::milliseconds pause, std::chrono::seconds asked) {
  return std::max<std::chrono::milliseconds>(pause, std::min(asked, asked_pause_max));
}

base::Result<std::unique_ptr<Service>> Service::make(const config::Config& config, const base::Clock& clock) {
  std::unique_ptr<Service> service(new Service(config.publish.interval, clock));
  for (const config::Sink& sink : config.publish.sinks) {
    auto made = make_sink(sink, config.node, clock);
    if (!made) return base::wrap(fmt::format("the sink '{}'", sink.name), made.error());
    Worker worker{.name = sink.name, .sink = *std::move(made), .publisher = {}};
    worker.publisher = std::make_unique<Publisher>(Publisher::Options{.name = sink.name,
                                                                      .cluster = config.node.cluster,
                                                                      .node = config.node.name,
                                                                      .data_dir = config.node.data_dir,
                                                                      .batch_events_max = batch_of(sink),
                                                                      .publishes_existing = sink.existing,
                                                                      .totals_depth = config.history.depth},
                                                   *worker.sink, clock);
    service->workers_.push_back(std::move(worker));
  }
  return service;
}

// All at once: each waits for its sink.
Service::~Service() {
  for (std::jthread& thread : threads_) thread.request_stop();
}

void Service::start() {
  for (Worker& worker : workers_)
    threads_.emplace_back([this, &worker](const std::stop_token& stop) { run(worker, stop); });
}

std::vector<std::string> Service::publish_once() {
  std::vector<std::string> failures;
  for (const Worker& worker : workers_) {
    const auto published = worker.publisher->publish_all([] { return false; });
    if (!published) failures.push_back(fmt::format("{}: {}", worker.name, published.error().message));
  }
  return failures;
}

// A failure is logged when it begins, or becomes another one, and when it ends.
void Service::run(Worker& worker, const std::stop_token& stop) {
  std::string failure;
  std::chrono::milliseconds pause{0};
  while (!stop.stop_requested()) {
    const std::uint64_t stored = worker.publisher->figures().events;
    const auto published = worker.publisher->publish_all([&] { return stop.stop_requested(); });
    if (!published && published.error().message != failure) {
      spdlog::error("the sink '{}' fails: {}; retries", worker.name, published.error().message);
    } else if (published && !failure.empty()) {
      spdlog::info("the sink '{}' works again", worker.name);
    }
    failure = published ? "" : published.error().message;
    const bool has_stored = worker.publisher->figures().events > stored;
    pause = published ? std::chrono::milliseconds(0) : next_pause(pause, has_stored);
    const auto asked = worker.sink->take_retry_after();
    wait(published ? interval_ : wait_for_attempt(pause, asked), stop);
  }
}

void Service::wait(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  stopped_.wait_for(lock, stop, time, [] { return false; });
}

scanner::PublishRecord Service::record() const {
  scanner::PublishRecord record{.written_at = clock_.wall_now()};
  for (const Worker& worker : workers_) record.sinks.push_back(worker.publisher->figures());
  return record;
}

std::string Service::status_line() const {
  std::vector<std::string> failed;
  for (const Worker& worker : workers_) {
    if (!worker.publisher->figures().error.empty()) failed.push_back(worker.name);
  }
  if (failed.empty())
    return fmt::format("publishes to {} sink{}", workers_.size(), workers_.size() == 1 ? "" : "s");
  return fmt::format("publishes to {} of {} sinks; fails: {}", workers_.size() - failed.size(),
                     workers_.size(), fmt::join(failed, ", "));
}

}  // namespace spoor::publish
