#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>

#include "daemon/durability/group_commit.h"
#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/http/http_message.h"
#include "tracker/cycles/tracker.h"
#include "tracker/storage/persistence.h"

namespace spoor::daemon {

// GET /v1/dirty and POST /v1/peer/cycle: what the tracker of this node holds.
//
// Runs on the main thread; merges the marks for peers on `answers`, while marks are made. All references
// must outlive it.
class TrackerRoutes {
 public:
  struct Options {
    tracker::NodeIdentity node;
    std::uint64_t run = 0;           // drawn at this start, see peer/gather/cycle_frame.h
    std::uint64_t rules_digest = 0;  // of the namespace rules
  };

  TrackerRoutes(Options options, tracker::Tracker& tracker, SnapshotScheduler& snapshot_scheduler,
                GroupCommit& group_commit, boost::asio::thread_pool& answers);

  HttpResponse dirty(const HttpRequest& request) const;
  boost::asio::awaitable<HttpResponse> cycle(const HttpRequest& request);

 private:
  const Options options_;
  tracker::Tracker& tracker_;
  SnapshotScheduler& snapshot_scheduler_;
  GroupCommit& group_commit_;
  boost::asio::thread_pool& answers_;
};

}  // namespace spoor::daemon
