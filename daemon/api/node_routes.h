#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/api/caller_queue.h"
#include "daemon/api/mark_intake.h"
#include "daemon/durability/group_commit.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/http/http_message.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/membership/retirement.h"
#include "daemon/status/metrics.h"
#include "daemon/status/status_json.h"
#include "daemon/status/watched_drives.h"
#include "peer/gather/cycle_frame.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// What this node holds and how it is: its tracker (GET /v1/dirty, POST /v1/peer/cycle, /v1/peer/adopt and
// /v1/retire), its drives
// (POST /v1/snapshot, GET /v1/drives, POST /v1/drives/accept and /v1/drives/stamp, POST /v1/watch and
// /v1/watch/sync) and its state (GET /v1/status, /metrics and /readyz).
//
// Runs on the main thread; merges the marks for peers on `answers`, while marks are made. All references
// must outlive it.
class NodeRoutes {
 public:
  struct Parts : StatusSources {
    std::uint64_t run = 0;           // drawn at this start, see peer/gather/cycle_frame.h
    std::uint64_t rules_digest = 0;  // of the namespace rules
    Introduction& introduction;
    Retirement& retirement;
    const MarkIntake& marks;
    Metrics& metrics;
    boost::asio::thread_pool& answers;
  };

  NodeRoutes(Parts parts, const base::Clock& clock);

  HttpResponse dirty(const HttpRequest& request) const;
  boost::asio::awaitable<HttpResponse> cycle(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> adopt(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> retire(const HttpRequest& request);

  // `caller`: as in Reports, also below.
  boost::asio::awaitable<HttpResponse> save_snapshot(std::string caller);
  boost::asio::awaitable<HttpResponse> drives();
  boost::asio::awaitable<HttpResponse> accept_drive(const HttpRequest& request, std::string caller);
  boost::asio::awaitable<HttpResponse> stamp_drive(const HttpRequest& request, std::string caller);

  HttpResponse watch(const HttpRequest& request);
  boost::asio::awaitable<HttpResponse> sync_watch(const HttpRequest& request, std::string caller);

  boost::asio::awaitable<HttpResponse> status();
  boost::asio::awaitable<HttpResponse> metrics(std::string caller);
  HttpResponse ready() const;

  // Why the node is not ready; empty if it is.
  std::vector<std::string> health_errors() const;

 private:
  std::optional<Problem> refuse_adoption(const peer::CycleFrame& frame, const Caller& caller) const;
  HttpResponse last_drives() const;

  const Parts parts_;
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
  // Behind a disk that hangs, requests would fill all connections. Only the places are used, not the turns.
  CallerQueue saves_{16};
  CallerQueue syncs_{16};
  CallerQueue scrapes_{8};
  CallerQueue adoptions_{4};
};

}  // namespace spoor::daemon
