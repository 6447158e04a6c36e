#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "daemon/api/caller_queue.h"
#include "daemon/api/cluster_usage.h"
#include "daemon/api/scan_waits.h"
#include "daemon/http/http_message.h"
#include "peer/gather/handover.h"
#include "scanner/store/usage_database.h"
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

// GET /v1/usage, /v1/usage/history, /v1/scans and /v1/changes, and POST /v1/peer/unread: the results of this
// node's scans, from their database, which is opened read-only for each response. With scope=cluster,
// /v1/usage adds those of all members.
//
// Runs on the main thread; reads on `pool`, and asks the members on a thread of its own, for a time so short
// that a stop can wait for it. `caller`: who asks, for the share of each in the queue. All references must
// outlive it.
class Reports {
 public:
  Reports(std::filesystem::path database, boost::asio::thread_pool& pool, const base::Clock& clock,
          ScanWaits& waits, ReportsOptions options = {});

  boost::asio::awaitable<HttpResponse> usage(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> history(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> scans(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> changes(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> unread(const HttpRequest& request, std::string caller);

 private:
  using Read = std::function<base::Result<HttpResponse>(scanner::UsageDatabase&)>;

  boost::asio::awaitable<HttpResponse> read(std::string caller, Read reading);
  boost::asio::awaitable<HttpResponse> run(boost::asio::thread_pool& pool, CallerQueue& queue,
                                           std::string caller, std::function<HttpResponse()> work);
  std::function<bool()> time_limit() const;

  const std::filesystem::path database_;
  boost::asio::thread_pool& pool_;
  const base::Clock& clock_;
  ScanWaits& waits_;
  const ReportsOptions options_;
  ClusterUsage cluster_;  // on `asking_`
  boost::asio::thread_pool asking_{1};
  CallerQueue readers_;
  CallerQueue askers_;
};

}  // namespace spoor::daemon
