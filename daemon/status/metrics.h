#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "daemon/http/http_message.h"
#include "daemon/http/http_server.h"
#include "daemon/status/scan_watch.h"

namespace spoor::daemon {

// GET /metrics, in the text format of Prometheus (docs/operations.md), and the counting of requests for it.
// All other figures are read at the scrape from the components that own them.
//
// Thread-safe except scrape(), which runs on the main thread. All references must outlive it.
class Metrics {
 public:
  Metrics(const HttpServer& server, ScanWatch& scans, const base::Clock& clock);

  // The response of `answering`, counted under `route`, one of few. `request` must outlive it.
  boost::asio::awaitable<HttpResponse> measure(const HttpRequest& request, std::string_view route,
                                               boost::asio::awaitable<HttpResponse> answering);

  // Counts a request that was refused before its body was read, or while it was read.
  void refused(std::string_view route, unsigned status, const std::string& problem);

  // The response to a scrape; `status` returns the figures of the node as text.
  boost::asio::awaitable<HttpResponse> scrape(std::function<std::string()> status);

 private:
  // The figures of one route: the library's lookup by labels is slow.
  struct Route {
    prometheus::Counter& body_bytes;
    prometheus::Histogram& duration;
    std::map<unsigned, prometheus::Counter*> by_status;
    std::map<std::string, prometheus::Counter*> by_code;
  };

  Route& route(std::string_view name);
  void count(Route& route, std::string_view name, unsigned status, const std::string& problem);
  std::string connections() const;

  const HttpServer& server_;
  ScanWatch& scans_;
  const base::Clock& clock_;
  const base::WallTime started_at_;
  prometheus::Registry registry_;
  prometheus::Family<prometheus::Counter>& requests_;
  prometheus::Family<prometheus::Counter>& problems_;
  prometheus::Family<prometheus::Counter>& body_bytes_;
  prometheus::Family<prometheus::Histogram>& durations_;
  std::mutex mutex_;  // of the routes
  std::map<std::string, Route, std::less<>> routes_;
};

}  // namespace spoor::daemon
