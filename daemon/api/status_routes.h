#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <vector>

#include "base/clock.h"
#include "daemon/api/mark_intake.h"
#include "daemon/durability/group_commit.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/http/http_message.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/status/metrics.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// GET /v1/status, /metrics, /livez, /healthz and /readyz.
//
// Runs on the main thread. All references must outlive it.
class StatusRoutes {
 public:
  // What is reported.
  struct Parts {
    tracker::NodeIdentity node;
    std::string version;
    tracker::Persistence& persistence;
    const SnapshotScheduler& snapshot_scheduler;
    const GroupCommit& group_commit;
    const PeerWatch& peers;
    const EtcdMembership* etcd;  // null if it is not configured
    const MarkIntake& marks;
  };

  StatusRoutes(Parts parts, Metrics& metrics, const base::Clock& clock);

  HttpResponse status() const;
  boost::asio::awaitable<HttpResponse> metrics();
  HttpResponse alive() const;
  HttpResponse ready() const;

  // Why the node is not ready; empty if it is.
  std::vector<std::string> health_errors() const;

 private:
  template <class Render>
  auto render(Render render) const;

  const Parts parts_;
  Metrics& metrics_;
  const base::Clock& clock_;
  const base::SteadyTime started_at_;
};

}  // namespace spoor::daemon
