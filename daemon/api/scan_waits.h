#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "daemon/api/caller_queue.h"
#include "daemon/http/http_message.h"
#include "daemon/process/timer.h"

namespace spoor::daemon {

// The requests that wait for a scan: POST /v1/scans for its begin, GET /v1/changes?wait= for its end.
//
// Runs on the main thread; looks at the files on `pool`. All references must outlive it.
class ScanWaits {
 public:
  ScanWaits(const std::filesystem::path& database, boost::asio::thread_pool& pool, const base::Clock& clock,
            Timers& timers);

  // Ends all waits.
  void stop();

  // Writes scan.request beside the database, on which spoor-scan.path starts a scan (systemd/).
  boost::asio::awaitable<HttpResponse> start_scan(const HttpRequest& request, std::string caller);

  // Returns once there is news, as `has_news` says on the pool, or the time has passed, or the client has
  // closed its connection. Fails if too many requests wait, of this caller or of all.
  boost::asio::awaitable<std::optional<Problem>> wait_for_news(const HttpRequest& request, std::string caller,
                                                               std::function<bool()> has_news,
                                                               std::chrono::milliseconds time_max);

 private:
  // Calls it on the pool, in each period, until it is so, the time has passed, or the daemon stops.
  boost::asio::awaitable<void> wait_until(std::function<bool()> is_so, std::chrono::milliseconds period,
                                          std::chrono::milliseconds time_max);

  const std::filesystem::path scan_request_;
  boost::asio::thread_pool& pool_;
  const base::Clock& clock_;
  Timers& timers_;
  CallerQueue waiters_;
  CallerQueue starters_;
  std::size_t starting_ = 0;  // requests that wait for a scan to start
  std::set<Timer*> waits_;
  bool is_stopped_ = false;
};

}  // namespace spoor::daemon
