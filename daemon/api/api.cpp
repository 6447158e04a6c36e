#include "daemon/api/api.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"
#include "daemon/api/mark_request.h"
#include "daemon/api/s3_events.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

constexpr Roles marking = role_bit(config::Role::mark) | role_bit(config::Role::admin);
constexpr Roles reading = role_bit(config::Role::read) | role_bit(config::Role::admin);
constexpr Roles watching = reading | role_bit(config::Role::peer);  // nodes read each other's status, too
constexpr Roles gathering = role_bit(config::Role::peer) | role_bit(config::Role::admin);
constexpr Roles administering = role_bit(config::Role::admin);
constexpr Roles all_callers = 0;

enum class Body { none, needed };
enum class Thread { serving, main };

HttpResponse not_found() {
  return to_response({404, "not_found", "there is nothing at this path; see docs/http-api.md"});
}

HttpResponse options_of(std::string methods) {
  HttpResponse response;
  response.status = 204;
  response.headers["Allow"] = std::move(methods);
  return response;
}

boost::asio::awaitable<HttpResponse> at_once(HttpResponse response) { co_return response; }

}  // namespace

struct Api::Route {
  std::string_view path;
  std::string_view method;
  Roles allowed;
  Body body;
  Thread thread;  // `serving`: the one that read the request
  boost::asio::awaitable<HttpResponse> (*respond)(Api&, const HttpRequest&);

  std::string methods() const { return fmt::format("{}, OPTIONS", method == "GET" ? "GET, HEAD" : method); }
};

std::span<const Api::Route> Api::routes() {
  static constexpr Route table[] = {
      {"/v1/marks", "POST", marking, Body::needed, Thread::serving,
       [](Api& api, const HttpRequest& request) { return api.mark(request, read_mark_request); }},
      {"/v1/events/s3", "POST", marking, Body::needed, Thread::serving,
       [](Api& api, const HttpRequest& request) { return api.mark(request, read_s3_events); }},
      {"/v1/dirty", "GET", watching, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return at_once(api.services_.node.dirty(request)); }},
      {"/v1/status", "GET", watching, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return api.services_.node.status(); }},
      {"/v1/peer/cycle", "POST", gathering, Body::needed, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.node.cycle(request); }},
      {"/v1/snapshot", "POST", administering, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return api.services_.node.save_snapshot(); }},
      {"/v1/drives", "GET", reading, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return api.services_.node.drives(); }},
      {"/v1/drives/accept", "POST", administering, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.node.accept_drive(request); }},
      {"/v1/usage", "GET", reading, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.reports.usage(request); }},
      {"/v1/usage/history", "GET", reading, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.reports.history(request); }},
      {"/v1/scans", "GET", reading, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.reports.scans(request); }},
      {"/v1/changes", "GET", reading, Body::none, Thread::main,
       [](Api& api, const HttpRequest& request) { return api.services_.reports.changes(request); }},
      // For what monitors the daemon.
      {"/livez", "GET", all_callers, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return at_once(api.services_.node.alive()); }},
      {"/healthz", "GET", all_callers, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return at_once(api.services_.node.alive()); }},
      {"/readyz", "GET", watching, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return at_once(api.services_.node.ready()); }},
      {"/metrics", "GET", watching, Body::none, Thread::main,
       [](Api& api, const HttpRequest&) { return api.services_.node.metrics(); }},
  };
  return table;
}

const Api::Route* Api::find_route(std::string_view path) {
  const auto route = std::ranges::find(routes(), path, &Route::path);
  return route == routes().end() ? nullptr : &*route;
}

std::string_view route_of(std::string_view path) {
  const Api::Route* const route = Api::find_route(path);
  return route == nullptr ? "other" : route->path;
}

Api::Api(boost::asio::io_context& context, std::string node, Services services,
         std::shared_ptr<const Access> access, const base::Clock& clock)
    : context_(context),
      node_(std::move(node)),
      services_(services),
      clock_(clock),
      access_(std::move(access)) {}

std::optional<HttpResponse> Api::admit(const HttpRequest& request) const {
  const Route* const route = find_route(request.path);
  // Callers without any role do not learn which routes there are.
  const Roles allowed = route == nullptr || request.method == "OPTIONS" ? all_roles : route->allowed;
  const auto access = current_access();
  if (allowed != all_callers) {
    if (const auto problem = access->refuse(request, allowed)) {
      log_refusal(*access, request, *problem);
      return to_response(*problem);
    }
  }
  if (request.path == "*" && request.method == "OPTIONS") return options_of("GET, HEAD, POST, OPTIONS");
  if (route == nullptr) return not_found();
  if (request.method == "OPTIONS") return options_of(route->methods());
  if (request.method != route->method) {
    auto response = to_response({405, "method_not_allowed", fmt::format("use {} here", route->method)});
    response.headers["Allow"] = route->methods();
    return response;
  }
  if (request.method == "POST") {
    const bool asks = access->asks_for_credentials(request.caller);
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
  const Route* const route = find_route(request.path);
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
  auto taking = services_.marks.take([&request, read](MarkBatch& batch) { return read(request, batch); },
                                     request.body.size(), current_access()->identity_of(request));
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

void Api::note_refused(const HttpRequest& request) {
  const Route* const route = find_route(request.path);
  if (route == nullptr || route->allowed != marking || request.method != "POST") return;
  services_.marks.count_rejected();
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
