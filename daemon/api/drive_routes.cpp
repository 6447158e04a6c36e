#include "daemon/api/drive_routes.h"

#include <spdlog/spdlog.h>

#include <boost/asio/use_awaitable.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/http/problem.h"
#include "daemon/status/status_json.h"
#include "tracker/paths/path.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr unsigned saves_waiting_max = 16;

}  // namespace

// Behind a disk that hangs they would fill all connections.
std::optional<HttpResponse> DriveRoutes::refuse_more_saves() const {
  if (saves_waiting_ < saves_waiting_max) return std::nullopt;
  return to_response({503, "overloaded", "too many requests wait for a save already"});
}

boost::asio::awaitable<HttpResponse> DriveRoutes::save_snapshot() {
  if (auto busy = refuse_more_saves()) co_return *std::move(busy);
  ++saves_waiting_;
  const auto saved = co_await snapshot_scheduler_.save();
  --saves_waiting_;
  if (!saved.durable()) {
    const Problem problem{503, "not_durable", "no drive took the snapshot; see 'snapshot' in /v1/status"};
    co_return to_response(problem);
  }
  co_return json_response(snapshot_json(saved));
}

boost::asio::awaitable<HttpResponse> DriveRoutes::list() {
  const auto states = co_await snapshot_scheduler_.check_drives();
  const json drives = drives_json(states);
  co_return json_response({{"drives", drives}});
}

HttpResponse DriveRoutes::last_drives() const {
  json drives = json::array();
  if (const auto& last = snapshot_scheduler_.last()) drives = drives_json(last->drives);
  return json_response({{"drives", drives}});
}

boost::asio::awaitable<HttpResponse> DriveRoutes::accept(const HttpRequest& request) {
  const auto path = request.query_value("path");
  if (!path || path->empty()) {
    co_return to_response({400, "invalid_request", "give the drive: /v1/drives/accept?path=/mnt/disk1"});
  }
  if (auto busy = refuse_more_saves()) co_return *std::move(busy);
  ++saves_waiting_;
  const auto done = co_await snapshot_scheduler_.accept_drive(std::filesystem::path(*path));
  --saves_waiting_;
  if (!done && done.error().code == std::errc::invalid_argument) {
    co_return to_response({404, "not_found", done.error().message});
  }
  if (!done) co_return to_response({409, "drive_refused", done.error().message});
  spdlog::warn("the drive at {} was accepted: it is the one from now on", base::printable(*path));
  co_return last_drives();
}

}  // namespace spoor::daemon
