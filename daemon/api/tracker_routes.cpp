#include "daemon/api/tracker_routes.h"

#include <fmt/core.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/number.h"
#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/http/problem.h"
#include "peer/gather/cycle_frame.h"
#include "peer/gather/cycle_request.h"
#include "tracker/paths/path.h"

namespace spoor::daemon {
namespace {

struct EncodedAnswer {
  std::string frame;
  bool has_advanced = false;
  tracker::JournalPosition position = 0;
};

boost::asio::awaitable<EncodedAnswer> answer(tracker::Tracker& tracker, tracker::CycleRequest asked,
                                             peer::CycleFrame frame) {
  frame.answer = tracker.cycle(asked);
  co_return EncodedAnswer{peer::encode_cycle_frame(frame), frame.answer.has_advanced, frame.answer.position};
}

}  // namespace

TrackerRoutes::TrackerRoutes(Options options, tracker::Tracker& tracker,
                             SnapshotScheduler& snapshot_scheduler, GroupCommit& group_commit,
                             boost::asio::thread_pool& answers)
    : options_(std::move(options)),
      tracker_(tracker),
      snapshot_scheduler_(snapshot_scheduler),
      group_commit_(group_commit),
      answers_(answers) {}

HttpResponse TrackerRoutes::dirty(const HttpRequest& request) const {
  if (const auto unknown = unknown_parameter(request, {"path", "since"})) return to_response(*unknown);
  const auto raw = request.query_value("path");
  if (!raw) return to_response({400, "invalid_request", "give the path to look up: /v1/dirty?path=a/b"});
  const auto since = base::parse_number<std::uint64_t>(request.query_value("since").value_or("0"));
  if (!since) return to_response({400, "invalid_request", "'since' must be a cycle number"});
  const auto path = tracker::normalise_path(*raw);
  if (!path) return to_response(path_problem(path.error(), *raw));

  const auto answer = tracker_.dirty(*path, {*since});
  nlohmann::ordered_json body{
      {"path", *path}, {"dirty", answer.latest.has_value()}, {"latest_cycle", nullptr}};
  if (answer.latest) body["latest_cycle"] = answer.latest->value;
  // "No" does not cover cycles that are no longer kept.
  body["oldest_cycle"] = answer.oldest_kept.value;
  return json_response(body);
}

boost::asio::awaitable<HttpResponse> TrackerRoutes::cycle(const HttpRequest& request) {
  const auto query = peer::parse_cycle_query(request.body);
  if (!query) {
    const bool is_json = query.error().code != std::errc::bad_message;
    const Problem problem{400, is_json ? "invalid_request" : "invalid_json", query.error().message};
    co_return to_response(problem);
  }
  const tracker::NodeIdentity& node = options_.node;
  if (query->cluster != node.cluster) {
    co_return to_response({409, "wrong_cluster",
                           fmt::format("node '{}' belongs to cluster '{}', not to '{}'", node.node,
                                       node.cluster, base::printable(query->cluster))});
  }
  if (!tracker_.is_in_reach(query->request.current)) {
    co_return to_response(
        {409, "cycle_out_of_reach",
         fmt::format(
             "cycle {} is more than {} ahead of the one that node '{}' is in, which no cluster gets to by "
             "counting; see \"Cycle numbers out of reach\" in docs/cluster.md",
             query->request.current.value, tracker::CycleId::jump_max, node.node)});
  }
  tracker::CycleRequest asked = query->request;
  // A cycle whose opening a crash would undo must not be reported as open; what is there can be read.
  if (!group_commit_.health_error().empty()) asked.current = {};
  peer::CycleFrame frame{node, options_.run, options_.rules_digest, {}};
  auto answering = answer(tracker_, asked, std::move(frame));
  EncodedAnswer answered;
  if (asked.marks_wanted) {
    answered = co_await boost::asio::co_spawn(answers_, std::move(answering), boost::asio::use_awaitable);
  } else {
    answered = co_await std::move(answering);  // costs nothing, and need not wait behind merges
  }
  if (answered.has_advanced) snapshot_scheduler_.save_soon();
  const auto durable = co_await group_commit_.wait(answered.position);
  if (!durable) co_return to_response({503, "not_durable", durable.error().message});
  HttpResponse response;
  response.content_type = peer::cycle_frame_content_type;
  response.body = std::move(answered.frame);
  co_return response;
}

}  // namespace spoor::daemon
