#include "daemon/api/status_routes.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/api/api_message.h"
#include "daemon/http/problem.h"
#include "daemon/status/status_json.h"
#include "daemon/status/status_metrics.h"

namespace spoor::daemon {

StatusRoutes::StatusRoutes(Parts parts, Metrics& metrics, const base::Clock& clock)
    : parts_(std::move(parts)), metrics_(metrics), clock_(clock), started_at_(clock.steady_now()) {}

template <class Render>
auto StatusRoutes::render(Render render) const {
  return render(StatusInput{.node = parts_.node,
                            .version = parts_.version,
                            .uptime = clock_.steady_now() - started_at_,
                            .tracker = parts_.persistence.tracker().status(),
                            .counters = parts_.marks.counters(),
                            .last_save = parts_.snapshot_scheduler.last(),
                            .last_durable_save = parts_.snapshot_scheduler.last_durable(),
                            .failed_saves = parts_.snapshot_scheduler.failures(),
                            .durability = parts_.persistence.durability(),
                            .journal = parts_.persistence.journal_status(),
                            .health_error = parts_.group_commit.health_error(),
                            .peers = parts_.peers.states(),
                            .peer_tls = parts_.peers.tls_expiry(),
                            .etcd = parts_.etcd == nullptr ? nullptr : &parts_.etcd->status(),
                            .dns = parts_.peers.dns_states()});
}

HttpResponse StatusRoutes::status() const {
  return render([](const StatusInput& input) { return json_response(status_json(input)); });
}

boost::asio::awaitable<HttpResponse> StatusRoutes::metrics() {
  return metrics_.scrape([this] {
    const bool is_ready = health_errors().empty();
    return render([&](const StatusInput& input) { return status_metrics(input, is_ready); });
  });
}

HttpResponse StatusRoutes::alive() const { return json_response({{"status", "ok"}}); }

HttpResponse StatusRoutes::ready() const {
  using json = nlohmann::ordered_json;
  const std::vector<std::string> reasons = health_errors();
  if (reasons.empty()) return json_response({{"status", "ready"}});
  auto response = to_response(
      {503, "not_ready", "some of what is marked may not be kept, or not be asked for; see the reasons"});
  json body = json::parse(response.body);
  body["reasons"] = reasons;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

std::vector<std::string> StatusRoutes::health_errors() const {
  std::vector<std::string> reasons = parts_.snapshot_scheduler.health_error();
  if (auto health_error = parts_.group_commit.health_error(); !health_error.empty()) {
    reasons.push_back(fmt::format("journal: {}", health_error));
  }
  if (auto health_error = parts_.etcd == nullptr ? "" : parts_.etcd->health_error(); !health_error.empty()) {
    reasons.push_back(std::move(health_error));
  }
  return reasons;
}

}  // namespace spoor::daemon
