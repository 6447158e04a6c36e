#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>

#include "daemon/durability/snapshot_scheduler.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// POST /v1/snapshot, GET /v1/drives and POST /v1/drives/accept.
//
// Runs on the main thread. `snapshot_scheduler` must outlive it.
class DriveRoutes {
 public:
  explicit DriveRoutes(SnapshotScheduler& snapshot_scheduler) : snapshot_scheduler_(snapshot_scheduler) {}

  boost::asio::awaitable<HttpResponse> save_snapshot();
  boost::asio::awaitable<HttpResponse> list();
  boost::asio::awaitable<HttpResponse> accept(const HttpRequest& request);

 private:
  std::optional<HttpResponse> refuse_more_saves() const;
  HttpResponse last_drives() const;

  SnapshotScheduler& snapshot_scheduler_;
  unsigned saves_waiting_ = 0;
};

}  // namespace spoor::daemon
