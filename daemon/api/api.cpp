#include "daemon/api/api.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/api/page.h"
#include "daemon/http/http_places.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

constexpr Roles marking = role_bit(config::Role::mark) | role_bit(config::Role::admin);
constexpr Roles reading = role_bit(config::Role::read) | role_bit(config::Role::admin);
constexpr Roles watching =
    reading | role_bit(config::Role::peer);  // nodes read each other's status and totals, too
constexpr Roles gathering = role_bit(config::Role::peer) | role_bit(config::Role::admin);
constexpr Roles administering = role_bit(config::Role::admin);
constexpr Roles all_callers = 0;

enum class Body { none, needed };
enum class Thread { serving, main };

HttpResponse not_found() {
  return to_response(
      {404, "not_found", "there is nothing at this path; see /usr/share/doc/spoor/docs/http-api.md"});
}

bool is_page(std::string_view route) { return route == "/" || route == page_route; }

// Left out where `page` of the listener is false.
bool is_for_browsers(std::string_view route) { return is_page(route) || route == "/v1/session"; }

HttpResponse options_of(std::string methods) {
  HttpResponse response;
  response.status = 204;
  response.headers["Allow"] = std::move(methods);
  return response;
}

template <class Function>
struct ServiceOf;
template <class Result, class Service, class... Arguments>
struct ServiceOf<Result (Service::*)(Arguments...)> {
  using Type = Service;
};
template <class Result, class Service, class... Arguments>
struct ServiceOf<Result (Service::*)(Arguments...) const> {
  using Type = Service;
};

}  // namespace

struct Api::Route {
  std::string_view path;
  std::string_view method;
  Roles allowed;
  Body body;
  Thread thread;  // `serving`: the one that read the request
  boost::asio::awaitable<HttpResponse> (*respond)(Api&, const HttpRequest&);
};

// Calls the function of its service with the request, the caller, or both.
template <auto function>
boost::asio::awaitable<HttpResponse> Api::to(Api& api, const HttpRequest& request) {
  using Function = decltype(function);
  auto& service = std::get<typename ServiceOf<Function>::Type&>(api.services_);
  using Service = decltype(service);
  if constexpr (std::is_invocable_v<Function, Service, const HttpRequest&, std::string>) {
    return (service.*function)(request, api.caller_of(request));
  } else if constexpr (std::is_invocable_r_v<HttpResponse, Function, Service, const HttpRequest&>) {
    return at_once((service.*function)(request));
  } else if constexpr (std::is_invocable_v<Function, Service, const HttpRequest&>) {
    return (service.*function)(request);
  } else if constexpr (std::is_invocable_v<Function, Service, std::string>) {
    return (service.*function)(api.caller_of(request));
  } else {
    return (service.*function)();
  }
}

std::span<const Api::Route> Api::routes() {
  static constexpr auto sends_file = [](Api&, const HttpRequest& request) {
    return at_once(page_response(request));
  };
  static constexpr auto is_alive = [](Api&, const HttpRequest&) {
    return at_once(json_response({{"status", "ok"}}));
  };
  static constexpr Route table[] = {
      {"/v1/marks", "POST", marking, Body::needed, Thread::serving,
       [](Api& api, const HttpRequest& request) { return api.mark(request, read_mark_request); }},
      {"/v1/events/s3", "POST", marking, Body::needed, Thread::serving,
       [](Api& api, const HttpRequest& request) { return api.mark(request, read_s3_events); }},
      {"/v1/dirty", "GET", watching, Body::none, Thread::main, to<&NodeRoutes::dirty>},
      {"/v1/status", "GET", watching, Body::none, Thread::main, to<&NodeRoutes::status>},
      {"/v1/peer/cycle", "POST", gathering, Body::needed, Thread::main, to<&NodeRoutes::cycle>},
      {"/v1/peer/unread", "POST", gathering, Body::needed, Thread::main, to<&Reports::unread>},
      {"/v1/peer/adopt", "POST", gathering, Body::needed, Thread::main, to<&NodeRoutes::adopt>},
      {"/v1/gather", "POST", administering, Body::needed, Thread::main, to<&ScanGather::gather>},
      {"/v1/members", "GET", watching, Body::none, Thread::main, to<&ScanGather::list_members>},
      {"/v1/retire", "POST", administering, Body::none, Thread::main, to<&NodeRoutes::retire>},
      {"/v1/snapshot", "POST", administering, Body::none, Thread::main, to<&NodeRoutes::save_snapshot>},
      {"/v1/drives", "GET", reading, Body::none, Thread::main, to<&NodeRoutes::drives>},
      {"/v1/drives/accept", "POST", administering, Body::none, Thread::main, to<&NodeRoutes::accept_drive>},
      {"/v1/drives/stamp", "POST", administering, Body::none, Thread::main, to<&NodeRoutes::stamp_drive>},
      {"/v1/watch", "POST", administering, Body::needed, Thread::main, to<&NodeRoutes::watch>},
      {"/v1/watch/sync", "POST", administering, Body::needed, Thread::main, to<&NodeRoutes::sync_watch>},
      {"/v1/usage", "GET", watching, Body::none, Thread::main, to<&Reports::usage>},
      {"/v1/usage/history", "GET", reading, Body::none, Thread::main, to<&Reports::history>},
      {"/v1/scans", "GET", reading, Body::none, Thread::main, to<&Reports::scans>},
      {"/v1/scans", "POST", administering, Body::none, Thread::main, to<&ScanWaits::start_scan>},
      {"/v1/changes", "GET", reading, Body::none, Thread::main, to<&Reports::changes>},
      {"/v1", "GET", all_roles, Body::none, Thread::serving,
       [](Api&, const HttpRequest&) { return at_once(list_routes()); }},
      {"/openapi.yaml", "GET", all_callers, Body::none, Thread::serving, sends_file},
      // For browsers.
      {"/", "GET", all_callers, Body::none, Thread::serving, sends_file},
      {"/page/{name}", "GET", all_callers, Body::none, Thread::serving, sends_file},
      {"/v1/session", "DELETE", all_callers, Body::none, Thread::serving,
       [](Api& api, const HttpRequest& request) { return at_once(api.sessions_.sign_out(request)); }},
      {"/v1/session", "POST", reading, Body::none, Thread::serving,
       [](Api& api, const HttpRequest& request) {
         return at_once(api.sessions_.sign_in(request, *api.current_access()));
       }},
      // For what monitors the daemon.
      {"/livez", "GET", all_callers, Body::none, Thread::main, is_alive},
      {"/healthz", "GET", all_callers, Body::none, Thread::main, is_alive},
      {"/readyz", "GET", all_roles, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return at_once(std::get<NodeRoutes&>(api.services_).ready()); }},
      {"/metrics", "GET", watching, Body::none, Thread::main, to<&NodeRoutes::metrics>},
  };
  return table;
}

// One for each method. They stand next to each other.
std::span<const Api::Route> Api::routes_at(std::string_view path) {
  if (is_page_file(path)) path = page_route;
  const auto first = std::ranges::find(routes(), path, &Route::path);
  const auto end =
      std::find_if(first, routes().end(), [&](const Route& route) { return route.path != path; });
  return {first, end};
}

HttpResponse Api::list_routes() {
  nlohmann::ordered_json listed = nlohmann::ordered_json::array();
  for (const Route& route : routes()) listed.push_back({{"method", route.method}, {"path", route.path}});
  return json_response({{"routes", listed}, {"openapi", "/openapi.yaml"}});
}

// The one for its method, or else any at its path; null if there is none, or not for this listener.
const Api::Route* Api::find_route(const HttpRequest& request) {
  const auto here = routes_at(request.path);
  if (here.empty() || (!request.caller.gets_page && is_for_browsers(here.front().path))) return nullptr;
  const auto route = std::ranges::find(here, request.method, &Route::method);
  return route == here.end() ? &here.front() : &*route;
}

std::string Api::methods_at(std::string_view path) {
  std::string methods;
  for (const Route& route : routes_at(path)) {
    methods += fmt::format("{}, ", route.method == "GET" ? "GET, HEAD" : route.method);
  }
  return methods + "OPTIONS";
}

std::string_view route_of(std::string_view path) {
  const auto routes = Api::routes_at(path);
  return routes.empty() ? "other" : routes.front().path;
}

// The book of a scan takes some 100 bytes for each peer, of which hostile ones can make 30,000.
std::uint64_t body_bytes_max_of(std::string_view path) {
  return path == "/v1/gather" ? std::uint64_t{32} << 20U : 0;
}

Api::Api(boost::asio::io_context& context, std::string node, Services services,
         std::shared_ptr<const Access> access, const base::Clock& clock)
    : context_(context),
      node_(std::move(node)),
      services_(services),
      clock_(clock),
      sessions_(clock),
      access_(std::move(access)) {}

// Why the caller may not use a route for the roles `allowed`, neither by its own credentials nor by a
// session.
std::optional<Problem> Api::refuse(const HttpRequest& request, Roles allowed) {
  const auto access = current_access();
  auto problem = access->refuse(request, allowed);
  if (!problem || sessions_.allow(request, allowed, *access)) return std::nullopt;
  log_refusal(*access, request, *problem);
  return problem;
}

std::optional<HttpResponse> Api::admit(const HttpRequest& request) {
  const Route* const route = find_route(request);
  // Callers without any role do not learn which routes there are.
  const Roles allowed = route == nullptr || request.method == "OPTIONS" ? all_roles : route->allowed;
  if (allowed != all_callers) {
    if (const auto problem = refuse(request, allowed)) return to_response(*problem);
  }
  if (request.path == "*" && request.method == "OPTIONS")
    return options_of("GET, HEAD, POST, DELETE, OPTIONS");
  if (route == nullptr) return not_found();
  if (request.method == "OPTIONS") return options_of(methods_at(request.path));
  if (request.method != route->method) {
    const std::string methods = methods_at(request.path);
    auto response = to_response({405, "method_not_allowed", fmt::format("use one of {} here", methods)});
    response.headers["Allow"] = methods;
    return response;
  }
  const bool is_health = route->path == "/livez" || route->path == "/healthz";
  if (!is_health) {
    const bool asks = current_access()->asks_for_credentials(request.caller);
    if (const auto problem = refuse_cross_site(request, asks, node_)) return to_response(*problem);
  }
  if (allowed == all_callers && request.has_body) {
    return to_response({400, "invalid_request", "there is no body here"});
  }
  if (route->body == Body::needed && !request.has_length) {
    return to_response({411, "length_required", "send a Content-Length, or the body in chunks"});
  }
  return std::nullopt;
}

boost::asio::awaitable<HttpResponse> Api::handle(const HttpRequest& request) {
  const Route* const route = find_route(request);
  if (route == nullptr) co_return not_found();
  auto responding = respond(*route, request);
  if (route->thread == Thread::main) responding = run_on(context_, std::move(responding));
  auto response = co_await std::move(responding);
  co_return response;
}

// Calls the route on the thread where it is awaited.
boost::asio::awaitable<HttpResponse> Api::respond(const Route& route, const HttpRequest& request) {
  auto responding = route.respond(*this, request);
  auto response = co_await std::move(responding);
  co_return response;
}

boost::asio::awaitable<HttpResponse> Api::mark(const HttpRequest& request, ReadMarks read) {
  auto taking = std::get<MarkIntake&>(services_).take(
      [&request, read](MarkBatch& batch) { return read(request, batch); }, request.body.size(),
      current_access()->identity_of(request));
  const auto taken = co_await std::move(taking);
  if (!taken) {
    if (taken.error().status < 500) log_refusal(*current_access(), request, taken.error());
    co_return to_response(taken.error());
  }
  HttpResponse response;
  response.body = fmt::format(R"({{"marked":{},"ignored":{},"cycle":{}}})", taken->marked, taken->ignored,
                              taken->cycle.value);
  co_return response;
}

std::string Api::caller_of(const HttpRequest& request) const {
  return current_access()->identity_of(request) + " at " + peer_of(request.caller);
}

void Api::note_refused(const HttpRequest& request) {
  const Route* const route = find_route(request);
  if (route == nullptr || route->allowed != marking || request.method != "POST") return;
  std::get<MarkIntake&>(services_).count_rejected();
}

void Api::log_refusal(const Access& access, const HttpRequest& request, const Problem& problem) const {
  const std::string who = access.credential_of(request);
  const std::string from = request.caller.unix_peer         ? "the Unix socket"
                           : request.caller.address.empty() ? "a connection that is gone"
                                                            : request.caller.address;
  // Unknown tokens are one key: a caller can make up any number of them.
  const std::string identity =
      access.identity_of(request) + (request.authorization.empty() ? "" : " with a token");
  const auto requests = [&] {
    const std::scoped_lock lock(mutex_);
    return refusals_.note(fmt::format("{} {} {}", problem.code, from, identity), 1, clock_.steady_now());
  }();
  if (!requests) return;
  const std::string times =
      *requests > 1 ? fmt::format(", {} times since this was last logged", *requests) : "";
  spdlog::warn("refused {} {} from {} ({}): {}{}", base::printable(request.method),
               base::printable(request.path), from, who, problem.code, times);
}

std::shared_ptr<const Access> Api::current_access() const {
  const std::scoped_lock lock(mutex_);
  return access_;
}

void Api::set_access(std::shared_ptr<const Access> access) {
  const std::scoped_lock lock(mutex_);
  access_ = std::move(access);
}

}  // namespace spoor::daemon
