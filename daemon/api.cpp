#include "daemon/api.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "daemon/mark_request.h"
#include "daemon/problem.h"
#include "daemon/status_json.h"
#include "peer/cycle_frame.h"
#include "peer/cycle_request.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

struct Route {
  const char* path;
  const char* method;
};

constexpr Route routes[] = {
    {"/v1/marks", "POST"},    {"/v1/dirty", "GET"}, {"/v1/status", "GET"}, {"/v1/peer/cycle", "POST"},
    {"/v1/snapshot", "POST"}, {"/livez", "GET"},    {"/healthz", "GET"},   {"/readyz", "GET"},
};

HttpResponse json_response(const json& body) {
  HttpResponse response;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

// A problem that no route has to look into: there is no such route, or not in this way.
std::optional<HttpResponse> refuse_unrouted(const HttpRequest& request) {
  const auto* const route = std::find_if(std::begin(routes), std::end(routes),
                                         [&](const Route& each) { return request.path == each.path; });
  if (route == std::end(routes)) {
    return to_response({404, "not_found", "there is nothing at this path; see docs/http-api.md"});
  }
  if (request.method != route->method) {
    auto response = to_response({405, "method_not_allowed", fmt::format("use {} here", route->method)});
    const std::string method = route->method;
    response.headers["Allow"] = method == "GET" ? "GET, HEAD" : method;
    return response;
  }
  const bool has_body = request.path == "/v1/marks" || request.path == "/v1/peer/cycle";
  if (has_body && !request.has_length) {
    return to_response({411, "length_required", "send a Content-Length, or the body in chunks"});
  }
  return std::nullopt;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace

Api::Api(Options options, tracker::Tracker& tracker, const tracker::NamespaceRules& rules, Saver& saver,
         const PeerWatch& peers, const base::Clock& clock)
    : options_(std::move(options)),
      tracker_(tracker),
      rules_(rules),
      saver_(saver),
      peers_(peers),
      clock_(clock),
      started_at_(clock.steady_now()) {}

boost::asio::awaitable<HttpResponse> Api::handle(const HttpRequest& request) {
  if (auto refused = refuse_unrouted(request)) co_return *std::move(refused);
  if (request.path == "/v1/marks") co_return mark(request);
  if (request.path == "/v1/dirty") co_return dirty(request);
  if (request.path == "/v1/status") co_return status();
  if (request.path == "/v1/peer/cycle") co_return peer_cycle(request);
  if (request.path == "/v1/snapshot") {
    auto saved = co_await save_snapshot();
    co_return saved;
  }
  if (request.path == "/readyz") co_return ready();
  co_return alive();
}

HttpResponse Api::mark(const HttpRequest& request) {
  const auto parsed = parse_mark_request(request, rules_);
  if (!parsed) {
    ++counters_.rejected;
    return to_response(parsed.error());
  }
  const auto outcome = tracker_.mark(parsed->marks);
  counters_.accepted += outcome.marked;
  counters_.added += outcome.added;
  counters_.ignored += parsed->ignored;
  return json_response(
      {{"marked", outcome.marked}, {"ignored", parsed->ignored}, {"cycle", outcome.cycle.value}});
}

HttpResponse Api::dirty(const HttpRequest& request) const {
  const auto raw = request.query_value("path");
  if (!raw) return to_response({400, "invalid_request", "give the path to look up: /v1/dirty?path=a/b"});
  const auto since = parse_number(request.query_value("since").value_or("0"));
  if (!since) return to_response({400, "invalid_request", "'since' must be a cycle number"});
  const auto path = tracker::normalise_path(*raw);
  if (!path) return to_response(path_problem(path.error(), *raw, 0));

  const auto answer = tracker_.dirty(*path, {*since});
  json body{{"path", *path}, {"dirty", answer.latest.has_value()}, {"latest_cycle", nullptr}};
  if (answer.latest) body["latest_cycle"] = answer.latest->value;
  // A "no" says nothing of cycles that are no longer kept.
  body["oldest_cycle"] = answer.oldest_kept.value;
  return json_response(body);
}

HttpResponse Api::status() const {
  const auto uptime = clock_.steady_now() - started_at_;
  return json_response(status_json({.node = options_.node,
                                    .version = options_.version,
                                    .uptime = uptime,
                                    .tracker = tracker_.status(),
                                    .counters = counters_,
                                    .last_save = saver_.last(),
                                    .last_durable_save = saver_.last_durable(),
                                    .peers = peers_.states()}));
}

HttpResponse Api::peer_cycle(const HttpRequest& request) {
  const auto query = peer::parse_cycle_query(request.body);
  if (!query) return to_response({400, "invalid_request", query.error().message});
  if (query->cluster != options_.node.cluster) {
    return to_response({409, "wrong_cluster",
                        fmt::format("node '{}' belongs to cluster '{}', not to '{}'", options_.node.node,
                                    options_.node.cluster, tracker::printable(query->cluster))});
  }
  const std::uint64_t version = tracker_.version();
  const peer::CycleFrame frame{options_.node, options_.run, rules_.digest(), tracker_.cycle(query->request)};
  if (query->request.current.value != 0 && version != tracker_.version()) saver_.save_soon();
  HttpResponse response;
  response.content_type = peer::cycle_frame_content_type;
  response.body = peer::encode_cycle_frame(frame);
  return response;
}

boost::asio::awaitable<HttpResponse> Api::save_snapshot() {
  const auto saved = co_await saver_.save();
  if (!saved.durable()) {
    const Problem problem{503, "not_durable", "no drive took the snapshot; see 'snapshot' in /v1/status"};
    co_return to_response(problem);
  }
  co_return json_response(snapshot_json(saved));
}

HttpResponse Api::alive() const { return json_response({{"status", "ok"}}); }

HttpResponse Api::ready() const {
  const auto& last = saver_.last();
  if (!last || last->durable()) return json_response({{"status", "ready"}});
  auto response = to_response({503, "not_ready", "no drive takes the snapshot"});
  json body = json::parse(response.body);
  for (const auto& drive : last->drives) {
    body["reasons"].push_back(
        fmt::format("drive {}: {}", tracker::printable(drive.drive.native()), drive.error));
  }
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
