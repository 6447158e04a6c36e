#include "daemon/api/node_routes.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "base/number.h"
#include "base/printable.h"
#include "daemon/api/api_message.h"
#include "daemon/process/task.h"
#include "daemon/status/status_metrics.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/gather/handover.h"
#include "peer/http/certificate_names.h"
#include "peer/http/watch_report.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/filter/mark_cursor.h"
#include "tracker/paths/path.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t watch_body_bytes_max = std::size_t{256} << 10U;

// It is parsed on the main thread.
std::optional<HttpResponse> refuse_watch_body(const HttpRequest& request) {
  if (request.body.size() <= watch_body_bytes_max) return std::nullopt;
  return to_response({413, "body_too_large", "the body is too large for a report of spoor-watch"});
}

HttpResponse wrong_node(const tracker::NodeIdentity& node, std::string_view cluster, std::string_view name) {
  return to_response({409, "wrong_node",
                      fmt::format("this is node '{}' of cluster '{}', not '{}' of '{}'", node.node,
                                  node.cluster, base::printable(name), base::printable(cluster))});
}

HttpResponse refused_drive(const base::Error& error) {
  const bool is_unknown = error.code == std::errc::invalid_argument;
  return to_response(is_unknown ? Problem{404, "not_found", error.message}
                                : Problem{409, "drive_refused", error.message});
}

constexpr std::string_view waiting_for_a_save = "requests wait for a save";

struct EncodedAnswer {
  std::string frame;
  bool has_advanced = false;
  tracker::JournalPosition position = 0;
};

}  // namespace

NodeRoutes::NodeRoutes(Parts parts, const base::Clock& clock)
    : parts_(std::move(parts)), clock_(clock), started_at_(clock.steady_now()) {}

HttpResponse NodeRoutes::dirty(const HttpRequest& request) const {
  QueryReader query{request, unknown_parameter(request, {"path", "since"})};
  const auto raw = request.query_value("path");
  query.require(raw.has_value(), "give the path to look up: /v1/dirty?path=a/b");
  const auto since = base::parse_number<std::uint64_t>(request.query_value("since").value_or("0"));
  query.require(since.has_value(), "'since' must be a cycle number");
  if (query.problem) return to_response(*query.problem);
  const auto path = tracker::normalise_path(*raw);
  if (!path) return to_response(path_problem(path.error(), *raw));

  auto answer = parts_.persistence.tracker().dirty(*path, {*since});
  const bool is_any_named =
      parts_.persistence.tracker().dirty(tracker::drive_marks_top, {*since}).latest.has_value();
  for (const std::string& drive : parts_.persistence.drives().ids()) {
    if (!is_any_named) break;
    const std::string named = tracker::drive_mark_path(drive, *path);
    if (named.empty()) continue;
    const auto on_drive = parts_.persistence.tracker().dirty(named, {*since});
    answer.latest = std::max(answer.latest, on_drive.latest);
  }
  json body{{"path", *path}, {"dirty", answer.latest.has_value()}, {"latest_cycle", nullptr}};
  if (answer.latest) body["latest_cycle"] = answer.latest->value;
  // "No" does not cover cycles that are no longer kept.
  body["oldest_cycle"] = answer.oldest_kept.value;
  return json_response(body);
}

boost::asio::awaitable<HttpResponse> NodeRoutes::cycle(const HttpRequest& request) {
  const tracker::NodeIdentity& node = parts_.node;
  const auto query = read_cycle_query(request, node.node, node.cluster);
  if (!query) co_return to_response(query.error());
  if (!parts_.persistence.tracker().is_in_reach(query->request.current)) {
    co_return to_response(
        {409, "cycle_out_of_reach",
         fmt::format(
             "cycle {} is more than {} ahead of the one that node '{}' is in, which no cluster gets to by "
             "counting; see \"A cycle number out of reach\" in /usr/share/doc/spoor/docs/troubleshooting.md",
             query->request.current.value, tracker::CycleId::jump_max, node.node)});
  }
  tracker::JournalPosition recorded = 0;
  if (query->member) {
    recorded = parts_.introduction.record(*query->member);
    parts_.peers.meet(query->member->id);
  }
  tracker::CycleRequest asked = query->request;
  // A cycle whose opening a crash would undo must not be reported as open; what is there can be read.
  if (!parts_.group_commit.health_error().empty()) asked.current = {};
  const bool is_closed = parts_.persistence.membership() != tracker::Membership::member;
  peer::CycleFrame frame{node, parts_.run, parts_.rules_digest, {}, is_closed};
  // By value: at a stop, it may run on after this coroutine is gone.
  auto answering = [&tracker = parts_.persistence.tracker(), asked, frame]() mutable -> EncodedAnswer {
    frame.answer = tracker.cycle(asked);
    return {peer::encode_cycle_frame(frame), frame.answer.has_advanced, frame.answer.position};
  };
  EncodedAnswer answered;
  const bool merges = asked.marks_wanted || asked.members_wanted ||
                      asked.current.value != 0;  // a cycle that is closed is merged, too
  if (merges) {
    answered = co_await run_on(parts_.answers, std::move(answering));
  } else {
    answered = answering();  // costs nothing, and need not wait behind others
  }
  if (answered.has_advanced) parts_.snapshot_scheduler.save_soon();
  const auto durable = co_await parts_.group_commit.wait(std::max(answered.position, recorded));
  if (!durable) co_return to_response({503, "not_durable", durable.error().message});
  HttpResponse response;
  response.content_type = peer::cycle_frame_content_type;
  response.body = std::move(answered.frame);
  co_return response;
}

// A refusal means that this node does not have the marks.
std::optional<Problem> NodeRoutes::refuse_adoption(const peer::CycleFrame& frame,
                                                   const Caller& caller) const {
  const tracker::NodeIdentity& node = parts_.node;
  const tracker::NodeIdentity& sender = frame.sender;
  if (const auto issued = peer::check_issued_for(caller.certificate_names, sender.node); !issued)
    return Problem{403, "forbidden", issued.error().message};
  if (sender.cluster != node.cluster || sender.node == node.node) {
    return Problem{409, "wrong_node",
                   fmt::format("node '{}' of cluster '{}' adopts no marks of '{}' of '{}'", node.node,
                               node.cluster, sender.node, sender.cluster)};
  }
  if (frame.rules_digest != parts_.rules_digest) {
    return Problem{
        409, "other_rules",
        fmt::format("node '{}' ignores other paths: make 'namespace' the same, and restart it", node.node)};
  }
  std::string error = parts_.introduction.error();
  if (error.empty()) error = parts_.group_commit.health_error();
  if (!error.empty()) return Problem{409, "not_a_member", std::move(error)};
  return std::nullopt;
}

boost::asio::awaitable<HttpResponse> NodeRoutes::adopt(const HttpRequest& request, std::string caller) {
  const CallerQueue::Place place(adoptions_, std::move(caller));
  if (!place.is_held()) co_return too_many("adoptions are under way");
  std::function<base::Result<peer::AdoptQuery>()> parsing = [&request] {
    return peer::parse_adopt_query(request.query_value("run"), request.query_value("from"), request.body);
  };
  auto query = co_await run_on(parts_.answers, std::move(parsing));
  if (!query) co_return to_response({400, "invalid_request", query.error().message});
  if (auto refused = refuse_adoption(query->frame, request.caller)) co_return to_response(*refused);
  const std::string sender = query->frame.sender.node;
  tracker::MarkSet marks = std::move(query->frame.answer.marks);
  marks.add_tree(tracker::retired_mark({sender, query->frame.answer.instance}, query->retired).path);
  std::function<base::Result<tracker::JournalPosition>()> adopting = [this, &marks] {
    return parts_.persistence.adopt(std::move(marks));
  };
  const auto adopted = co_await run_on(parts_.answers, std::move(adopting));
  if (!adopted) co_return to_response({413, "too_large", adopted.error().message});
  parts_.snapshot_scheduler.save_soon();
  const auto durable = co_await parts_.group_commit.wait(*adopted);
  if (!durable) co_return to_response({503, "not_durable", durable.error().message});
  // As with a mark: this node may retire meanwhile, and have handed its marks on without these.
  if (!parts_.introduction.is_open())
    co_return to_response({503, "not_a_member", parts_.introduction.error()});
  spdlog::warn("node '{}' has retired: its marks from cycle {} on are those of this node now", sender,
               query->retired.adopted_from.value);
  co_return json_response({{"node", parts_.node.node}});
}

boost::asio::awaitable<HttpResponse> NodeRoutes::retire(const HttpRequest& request) {
  if (const auto unknown = unknown_parameter(request, {"node"})) co_return to_response(*unknown);
  const tracker::NodeIdentity& node = parts_.node;
  const auto name = request.query_value("node");
  if (name && *name != node.node) co_return wrong_node(node, node.cluster, *name);
  auto retiring = parts_.retirement.retire();
  const auto done = co_await std::move(retiring);
  if (!done) {
    const bool is_refused = done.error().code == std::errc::connection_refused ||
                            done.error().code == std::errc::operation_in_progress;
    co_return to_response({is_refused ? 409U : 503U, "not_retired", done.error().message});
  }
  json body{
      {"node", node.node}, {"adopted_by", nullptr}, {"adopted_from", nullptr}, {"silent", done->silent}};
  if (!done->adopted_by.empty()) {
    body["adopted_by"] = done->adopted_by;
    body["adopted_from"] = done->adopted_from.value;
  }
  co_return json_response(body);
}

boost::asio::awaitable<HttpResponse> NodeRoutes::save_snapshot(std::string caller) {
  const CallerQueue::Place place(saves_, std::move(caller));
  if (!place.is_held()) co_return too_many(waiting_for_a_save);
  const auto saved = co_await parts_.snapshot_scheduler.save();
  if (!saved.durable()) {
    const Problem problem{503, "not_durable", "no drive took the snapshot; see 'snapshot' in /v1/status"};
    co_return to_response(problem);
  }
  co_return json_response(snapshot_json(saved));
}

boost::asio::awaitable<HttpResponse> NodeRoutes::drives() {
  const auto states = co_await parts_.snapshot_scheduler.check_drives();
  const json drives = drives_json(states);
  co_return json_response({{"drives", drives}});
}

HttpResponse NodeRoutes::last_drives() const {
  json drives = json::array();
  if (const auto& last = parts_.snapshot_scheduler.last()) drives = drives_json(last->drives);
  return json_response({{"drives", drives}});
}

boost::asio::awaitable<HttpResponse> NodeRoutes::accept_drive(const HttpRequest& request,
                                                              std::string caller) {
  const auto path = request.query_value("path");
  if (!path || path->empty()) {
    co_return to_response({400, "invalid_request", "give the drive: /v1/drives/accept?path=/mnt/disk1"});
  }
  const CallerQueue::Place place(saves_, std::move(caller));
  if (!place.is_held()) co_return too_many(waiting_for_a_save);
  const auto done = co_await parts_.snapshot_scheduler.accept_drive(std::filesystem::path(*path));
  if (!done) co_return refused_drive(done.error());
  spdlog::warn("the drive at {} was accepted: it is the one from now on", base::printable(*path));
  co_return last_drives();
}

boost::asio::awaitable<HttpResponse> NodeRoutes::stamp_drive(const HttpRequest& request, std::string caller) {
  const auto path = request.query_value("path");
  const auto stamp = request.query_value("stamp");
  const std::string_view before = request.query_value("before").value_or("");
  const tracker::NodeIdentity& node = parts_.node;
  const auto cluster = request.query_value("cluster");
  const auto name = request.query_value("node");
  const bool is_valid = cluster && name && path && !path->empty() && stamp &&
                        tracker::InstanceId::parse(*stamp) &&
                        (before.empty() || tracker::InstanceId::parse(before));
  if (!is_valid) {
    co_return to_response({400, "invalid_request",
                           "give the node, the drive and the stamps, of 32 hexadecimal digits: "
                           "/v1/drives/stamp?cluster=default&node=n1&path=/mnt/disk1&stamp=...&before=..."});
  }
  if (cluster != node.cluster || name != node.node) co_return wrong_node(node, *cluster, *name);
  const CallerQueue::Place place(saves_, std::move(caller));
  if (!place.is_held()) co_return too_many(waiting_for_a_save);
  tracker::DriveStamp stamps{std::string(*stamp), std::string(before)};
  auto stamping = parts_.snapshot_scheduler.stamp_drive(std::filesystem::path(*path), std::move(stamps));
  const base::Result<> done = co_await std::move(stamping);
  co_return done ? json_response(json::object()) : refused_drive(done.error());
}

HttpResponse NodeRoutes::watch(const HttpRequest& request) {
  if (auto refused = refuse_watch_body(request)) return *std::move(refused);
  auto report = peer::parse_watched_drive(request.body);
  if (!report) return to_response({400, "invalid_request", report.error().message});
  if (const auto known = parts_.watched.report(*std::move(report)); !known)
    return to_response({404, "not_found", known.error().message});
  return json_response(json::object());
}

boost::asio::awaitable<HttpResponse> NodeRoutes::sync_watch(const HttpRequest& request, std::string caller) {
  if (auto refused = refuse_watch_body(request)) co_return *std::move(refused);
  auto asked = peer::parse_sync_request(request.body);
  if (!asked) co_return to_response({400, "invalid_request", asked.error().message});
  const tracker::NodeIdentity& node = parts_.node;
  if (asked->cluster != node.cluster || asked->node != node.node)
    co_return wrong_node(node, asked->cluster, asked->node);
  const CallerQueue::Place place(syncs_, std::move(caller));
  if (!place.is_held()) co_return too_many("scans wait for spoor-watch");
  auto synchronising = parts_.watched.synchronise(*std::move(asked));
  const auto done = co_await std::move(synchronising);
  co_return json_response(peer::sync_json(done));
}

boost::asio::awaitable<HttpResponse> NodeRoutes::status() {
  co_await parts_.scans.refresh();  // for the limits
  const auto counters = parts_.marks.counters();
  const json status = status_json(parts_, counters, clock_.steady_now() - started_at_);
  co_return json_response(status);
}

boost::asio::awaitable<HttpResponse> NodeRoutes::metrics(std::string caller) {
  const CallerQueue::Place place(scrapes_, std::move(caller));
  if (!place.is_held()) co_return too_many("scrapes are under way");
  std::function<std::string()> status = [this] {
    const bool is_ready = health_errors().empty();
    return status_metrics(parts_, parts_.marks.counters(), is_ready);
  };
  auto response = co_await parts_.metrics.scrape(std::move(status));
  co_return response;
}

HttpResponse NodeRoutes::ready() const {
  const std::vector<std::string> reasons = health_errors();
  if (reasons.empty()) return json_response({{"status", "ready"}});
  auto response = to_response(
      {503, "not_ready", "some of what is marked may not be kept, or not be asked for; see the reasons"});
  json body = json::parse(response.body);
  body["reasons"] = reasons;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

std::vector<std::string> NodeRoutes::health_errors() const {
  std::vector<std::string> reasons = parts_.snapshot_scheduler.health_error();
  if (auto health_error = parts_.group_commit.health_error(); !health_error.empty()) {
    reasons.push_back(fmt::format("journal: {}", health_error));
  }
  const bool may_be_listed = parts_.etcd == nullptr || parts_.etcd->status().registered;
  auto membership_error = may_be_listed ? parts_.introduction.health_error() : parts_.introduction.error();
  if (!membership_error.empty()) reasons.push_back(std::move(membership_error));
  for (std::string& health_error : parts_.watched.health_errors()) reasons.push_back(std::move(health_error));
  return reasons;
}

}  // namespace spoor::daemon
