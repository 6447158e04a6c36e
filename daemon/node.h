#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "base/file_system.h"
#include "config/config.h"
#include "daemon/api/access.h"
#include "daemon/api/api.h"
#include "daemon/api/mark_intake.h"
#include "daemon/api/node_routes.h"
#include "daemon/api/reports.h"
#include "daemon/api/scan_gather.h"
#include "daemon/api/scan_waits.h"
#include "daemon/durability/group_commit.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/http/http_server.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/introduction.h"
#include "daemon/membership/peer_watch.h"
#include "daemon/membership/retirement.h"
#include "daemon/process/timer.h"
#include "daemon/status/metrics.h"
#include "daemon/status/scan_watch.h"
#include "daemon/status/watched_drives.h"
#include "peer/http/credentials.h"
#include "tracker/paths/namespace_rules.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// What a node needs from files besides its configuration.
struct NodeSecrets {
  std::shared_ptr<const Access> access;
  peer::Credentials peers;
  std::optional<EtcdMembership::Secrets> etcd;  // none: `peers.etcd` is not set
};

// The members of the cluster as they are known now, for its totals. `etcd` is null if it is not configured.
ClusterMembers cluster_members(const PeerWatch& peers, const EtcdMembership* etcd);

// The parts of a running daemon, in the order in which they depend on each other. Lives on the thread of
// `context`; all references must outlive it.
class Node {
 public:
  Node(boost::asio::io_context& context, HttpServer& server, const config::Config& config,
       const std::string& version, tracker::Persistence& persistence, NodeSecrets secrets,
       const base::Clock& clock);

  // Saves a first snapshot, and registers in etcd: takes some seconds, longer only if no drive responds. Then
  // serves requests, and starts what runs on a schedule.
  boost::asio::awaitable<void> start();

  // Ends what start() started, and lets open requests finish. `context` then has no work of this node.
  void stop();

  // After stop(): saves the last snapshot, and records a clean stop.
  auto save_last() { return snapshot_scheduler_.save_last(); }

  // Whether threads wait for drives that hang, while `context` has no work: the destructor then waits for
  // them too.
  bool has_hanging_drive() const { return snapshot_scheduler_.busy_drives() > 0; }

  // The line that a service manager shows; `is_reload_failed`: the changed configuration has errors.
  std::string status_line(bool is_reload_failed) const;

  // After a reload: all of `peers` but the credentials and `peers.etcd`.
  void set_peers(const config::Config::Peers& fresh);

  Api& api() { return api_; }
  PeerWatch& peers() { return peers_; }
  EtcdMembership* etcd() { return etcd_.get(); }
  WatchedDrives& watched_drives() { return watched_; }
  Introduction& introduction() { return introduction_; }
  boost::asio::thread_pool& pool() { return pool_; }

 private:
  HttpServer& server_;
  config::Config::Peers configured_peers_;
  tracker::Persistence& persistence_;
  const tracker::NodeIdentity identity_;
  const std::uint64_t run_;  // drawn at this start
  const tracker::NamespaceRules rules_;
  SystemTimers timers_;

  boost::asio::thread_pool pool_;
  boost::asio::thread_pool merging_{1};  // one large merge at a time, for the memory it takes
  boost::asio::thread_pool reporting_{1};
  boost::asio::thread_pool large_bodies_{1};

  SnapshotScheduler snapshot_scheduler_;
  GroupCommit group_commit_;
  Introduction introduction_;
  PeerWatch peers_;
  const std::unique_ptr<EtcdMembership> etcd_;  // null: not configured
  ScanWaits scan_waits_;
  Reports reports_;
  Retirement retirement_;
  ScanWatch scans_;
  WatchedDrives watched_;
  Metrics metrics_;
  MarkIntake intake_;
  NodeRoutes routes_;
  ScanGather gather_;
  Api api_;
};

}  // namespace spoor::daemon
