#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/api/caller_queue.h"
#include "daemon/api/cluster_usage.h"
#include "daemon/http/http_message.h"
#include "daemon/process/timer.h"
#include "peer/gather/handover.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/paths/copy_rules.h"

namespace spoor::daemon {

struct ReportsOptions {
  ClusterUsage::Options cluster = {};
  std::function<ClusterMembers()> members = [] { return ClusterMembers(); };
  tracker::CopyRules copies = {};
  std::function<std::optional<base::DiskSpace>()> fullest_drive = [] { return std::nullopt; };
};

// From which cycle of a tracker on the scans of this node have not read it, by their database.
base::Result<peer::UnreadFrom> unread_from(const std::filesystem::path& database, const tracker::PeerId& id);

// GET /v1/usage, /v1/usage/history, /v1/scans and /v1/changes, and POST /v1/scans and /v1/peer/unread: the
// results of this node's scans, from their database, which is opened read-only for each response. With
// scope=cluster, /v1/usage adds those of all members.
//
// Runs on the main thread; reads on `pool`, and asks the members on a thread of its own, for a time so short
// that a stop can wait for it. `caller`: who asks, for the share of each in the queue. All references must
// outlive it.
class Reports {
 public:
  Reports(std::filesystem::path database, boost::asio::thread_pool& pool, const base::Clock& clock,
          Timers& timers, ReportsOptions options = {});

  // Ends the waits, for changes and for the begin of a scan.
  void stop();

  boost::asio::awaitable<HttpResponse> usage(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> history(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> scans(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> changes(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> unread(const HttpRequest& request, std::string caller);

  // Writes scan.request beside the database, on which spoor-scan.path starts a scan (systemd/).
  boost::asio::awaitable<HttpResponse> start_scan(const HttpRequest& request, std::string caller);

 private:
  // Registered for stop() while it exists.
  struct Wait {
    explicit Wait(Reports& owner);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;

    Reports& reports;
    const std::unique_ptr<Timer> timer;
  };
  struct WaitTimes {
    std::chrono::milliseconds most;
    std::chrono::milliseconds period;
  };

  std::filesystem::path scan_request() const;

  // Calls it on the pool, in each period, until it is so, the time has passed, or the daemon stops.
  boost::asio::awaitable<void> wait_until(std::function<bool()> is_so, WaitTimes times);
  boost::asio::awaitable<HttpResponse> read(std::string caller, std::function<HttpResponse()> reading);
  boost::asio::awaitable<HttpResponse> run(boost::asio::thread_pool& pool, CallerQueue& queue,
                                           std::string caller, std::function<HttpResponse()> work);
  std::function<bool()> time_limit() const;

  const std::filesystem::path database_;
  boost::asio::thread_pool& pool_;
  const base::Clock& clock_;
  Timers& timers_;
  const ReportsOptions options_;
  ClusterUsage cluster_;  // on `asking_`
  boost::asio::thread_pool asking_{1};
  CallerQueue readers_;
  CallerQueue askers_;
  CallerQueue waiters_;
  CallerQueue starters_;
  std::size_t starting_ = 0;  // requests that wait for a scan to start
  std::set<Timer*> waits_;
  bool is_stopped_ = false;
};

}  // namespace spoor::daemon
