// How this node leaves the cluster (docs/cluster.md, "Leaving").
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "daemon/membership/etcd_membership.h"
#include "daemon/membership/introduction.h"
#include "daemon/membership/peer_watch.h"
#include "peer/gather/handover.h"
#include "peer/http/http_transport.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// Hands the marks of this node on to another member, as far as some scan may not have read them:
//
// 1. all members say from which cycle on their scans have not;
// 2. that this node retires is noted durably: no mark is acknowledged from here on;
// 3. one member adopts the marks, and is asked again, or another one is, until one has them for certain. If
//    all refuse, this node is a member as before; if one may have them, it stays as it is, until retire() is
//    called again, also after a restart;
// 4. that it has retired is noted. The next start begins a new instance.
//
// Lives on the main thread; requests run on `pool`. All references must outlive it.
class Retirement {
 public:
  struct Options {
    tracker::NodeIdentity node;
    std::uint64_t run = 0;           // as in peer/gather/cycle_frame.h
    std::uint64_t rules_digest = 0;  // of the namespace rules
    // From which cycle on the scans of this node have not read it.
    std::function<base::Result<peer::UnreadFrom>()> own_unread;
    peer::MakeTransport make_transport = peer::make_http_transport;
  };

  // `etcd` is null if it is not configured.
  Retirement(boost::asio::thread_pool& pool, Options options, tracker::Persistence& persistence,
             Introduction& introduction, const PeerWatch& peers, EtcdMembership* etcd);

  struct Done {
    std::string adopted_by;  // a node; empty: an earlier call did it
    tracker::CycleId adopted_from;
    std::vector<std::string> silent;  // the members that did not say what they have read, and why
  };

  // Fails with std::errc::timed_out if this node acknowledges marks no more, and has not retired. One call at
  // a time, else std::errc::operation_in_progress.
  boost::asio::awaitable<base::Result<Done>> retire();

  // Ends the requests of a call soon.
  void stop() { is_stopped_ = true; }

 private:
  struct Plan;
  struct Attempt;

  boost::asio::awaitable<base::Result<Done>> hand_over();
  Plan ask(const std::vector<base::Endpoint>& members, const peer::Credentials& credentials) const;
  Attempt offer(const Plan& plan, const peer::Credentials& credentials) const;

  boost::asio::thread_pool& pool_;
  const Options options_;
  tracker::Persistence& persistence_;
  Introduction& introduction_;
  const PeerWatch& peers_;
  EtcdMembership* const etcd_;
  bool is_retiring_ = false;
  std::atomic<bool> is_stopped_ = false;
};

}  // namespace spoor::daemon
