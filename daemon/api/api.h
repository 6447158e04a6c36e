#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/clock.h"
#include "daemon/api/access.h"
#include "daemon/api/mark_intake.h"
#include "daemon/api/node_routes.h"
#include "daemon/api/reports.h"
#include "daemon/api/scan_gather.h"
#include "daemon/api/scan_waits.h"
#include "daemon/api/sessions.h"
#include "daemon/http/http_message.h"
#include "daemon/process/log_limit.h"

namespace spoor::daemon {

// The route at the path, else "other": a label for figures.
std::string_view route_of(std::string_view path);

// Of a body for the route at the path, if it may be larger than limits.max_body.
std::uint64_t body_bytes_max_of(std::string_view path);

// The HTTP API, version 1 (docs/http-api.md), without sockets: its routes, the roles that may use them, and
// the thread that they run on.
//
// Thread-safe where stated: several threads may serve. They read marks and make them side by side; everything
// else runs on the thread of `context`, which is one of them. All references must outlive it.
class Api {
 public:
  // What the routes lead to.
  using Services = std::tuple<MarkIntake&, NodeRoutes&, Reports&, ScanWaits&, ScanGather&>;

  // `node` is the name of this one.
  Api(boost::asio::io_context& context, std::string node, Services services,
      std::shared_ptr<const Access> access, const base::Clock& clock);

  // The response that needs no body: there is no such route, or not with this method, or not for this caller;
  // also that to OPTIONS. Nothing for a request that handle() is to answer. Thread-safe.
  std::optional<HttpResponse> admit(const HttpRequest& request);

  // Counts a request to mark that did not come to handle(). Thread-safe.
  void note_refused(const HttpRequest& request);

  // Replaces the access rules. Thread-safe.
  void set_access(std::shared_ptr<const Access> access);

  // Responds to an admitted request, which must outlive the response. Thread-safe.
  boost::asio::awaitable<HttpResponse> handle(const HttpRequest& request);

 private:
  struct Route;
  using ReadMarks = std::optional<Problem> (*)(const HttpRequest&, MarkBatch&);

  friend std::string_view route_of(std::string_view path);
  template <auto function>
  static boost::asio::awaitable<HttpResponse> to(Api& api, const HttpRequest& request);
  static std::span<const Route> routes();
  static std::span<const Route> routes_at(std::string_view path);
  static const Route* find_route(const HttpRequest& request);
  static HttpResponse list_routes();
  static std::string methods_at(std::string_view path);

  boost::asio::awaitable<HttpResponse> respond(const Route& route, const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> mark(const HttpRequest& request, ReadMarks read);
  std::optional<Problem> refuse(const HttpRequest& request, Roles allowed);
  std::string caller_of(const HttpRequest& request) const;
  std::shared_ptr<const Access> current_access() const;
  void log_refusal(const Access& access, const HttpRequest& request, const Problem& problem) const;

  boost::asio::io_context& context_;
  const std::string node_;
  const Services services_;
  const base::Clock& clock_;
  Sessions sessions_;

  mutable std::mutex mutex_;  // of all below
  std::shared_ptr<const Access> access_;
  mutable LogLimit refusals_;
};

}  // namespace spoor::daemon
