#include "daemon/api.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "daemon/api_message.h"
#include "daemon/cross_site.h"
#include "daemon/problem.h"
#include "daemon/s3_events.h"
#include "daemon/status_json.h"
#include "daemon/status_metrics.h"
#include "peer/cycle_frame.h"
#include "peer/cycle_request.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr Roles marking = role_bit(config::Role::mark) | role_bit(config::Role::admin);
constexpr Roles reading = role_bit(config::Role::read) | role_bit(config::Role::admin);
constexpr Roles watching = reading | role_bit(config::Role::peer);  // nodes look at each other, too
constexpr Roles gathering = role_bit(config::Role::peer) | role_bit(config::Role::admin);
constexpr Roles administering = role_bit(config::Role::admin);
constexpr Roles anybody = 0;

struct Route {
  std::string_view path;
  std::string_view method;
  Roles allowed;
  bool has_body = false;
};

constexpr Route routes[] = {
    {"/v1/marks", "POST", marking, true},
    {"/v1/events/s3", "POST", marking, true},
    {"/v1/dirty", "GET", watching},
    {"/v1/status", "GET", watching},
    {"/v1/peer/cycle", "POST", gathering, true},
    {"/v1/snapshot", "POST", administering},
    {"/v1/drives", "GET", reading},
    {"/v1/drives/accept", "POST", administering},
    {"/v1/usage", "GET", reading},
    {"/v1/scans", "GET", reading},
    {"/v1/changes", "GET", reading},
    // For whoever watches the daemon.
    {"/livez", "GET", anybody},
    {"/healthz", "GET", anybody},
    {"/readyz", "GET", watching},
    {"/metrics", "GET", watching},
};

constexpr unsigned saves_waiting_max = 16;

const Route* find_route(std::string_view path) {
  const auto* const route = std::find_if(std::begin(routes), std::end(routes),
                                         [&](const Route& each) { return path == each.path; });
  return route == std::end(routes) ? nullptr : route;
}

std::string methods_of(const Route& route) {
  return fmt::format("{}, OPTIONS", route.method == "GET" ? "GET, HEAD" : route.method);
}

HttpResponse options_of(std::string methods) {
  HttpResponse response;
  response.status = 204;
  response.headers["Allow"] = std::move(methods);
  return response;
}

// What came of one part of a request, and then of the next.
void add(tracker::MarkOutcome& all, const tracker::MarkOutcome& next) {
  all.marked += next.marked;
  all.added += next.added;
  all.cycle = next.cycle;
  all.position = std::max(all.position, next.position);
}

template <class Function>
boost::asio::awaitable<std::invoke_result_t<Function>> call(Function function) {
  co_return function();
}

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

std::string_view route_of(std::string_view path) {
  const Route* const route = find_route(path);
  return route == nullptr ? "other" : route->path;
}

Api::Api(boost::asio::io_context& context, Options options, tracker::Persistence& persistence,
         const tracker::NamespaceRules& rules, Saver& saver, Committer& committer, const PeerWatch& peers,
         const EtcdMembership* etcd, Reports& reports, Metrics& metrics, boost::asio::thread_pool& answers,
         boost::asio::thread_pool& large_bodies, std::shared_ptr<const Access> access,
         const base::Clock& clock)
    : context_(context),
      options_(std::move(options)),
      persistence_(persistence),
      tracker_(persistence.tracker()),
      rules_(rules),
      saver_(saver),
      committer_(committer),
      peers_(peers),
      etcd_(etcd),
      reports_(reports),
      metrics_(metrics),
      answers_(answers),
      large_bodies_(large_bodies),
      clock_(clock),
      started_at_(clock.steady_now()),
      access_(std::move(access)) {}

std::optional<HttpResponse> Api::admit(const HttpRequest& request) const {
  const Route* const route = find_route(request.path);
  // Strangers are not told what there is.
  const Roles allowed = route == nullptr || request.method == "OPTIONS" ? all_roles : route->allowed;
  const auto access = current_access();
  if (allowed != anybody) {
    if (const auto problem = access->refuse(request, allowed)) {
      log_refusal(*access, request, *problem);
      return to_response(*problem);
    }
  }
  if (request.path == "*" && request.method == "OPTIONS") return options_of("GET, HEAD, POST, OPTIONS");
  if (route == nullptr) {
    return to_response({404, "not_found", "there is nothing at this path; see docs/http-api.md"});
  }
  if (request.method == "OPTIONS") return options_of(methods_of(*route));
  if (request.method != route->method) {
    auto response = to_response({405, "method_not_allowed", fmt::format("use {} here", route->method)});
    response.headers["Allow"] = methods_of(*route);
    return response;
  }
  if (request.method == "POST") {
    const bool asks = access->asks_for_credentials(request.caller);
    if (const auto problem = refuse_cross_site(request, asks, options_.node.node))
      return to_response(*problem);
  }
  if (allowed == anybody && request.has_body) {
    return to_response({400, "invalid_request", "there is no body here"});
  }
  if (route->has_body && !request.has_length) {
    return to_response({411, "length_required", "send a Content-Length, or the body in chunks"});
  }
  return std::nullopt;
}

void Api::log_refusal(const Access& access, const HttpRequest& request, const Problem& problem) const {
  const std::string who = access.credential_of(request);
  const std::string from = request.caller.unix_peer         ? "the Unix socket"
                           : request.caller.address.empty() ? "a connection that is gone"
                                                            : request.caller.address;
  // Unknown tokens are not told apart: a stranger has any number of them.
  const std::string identity =
      access.identity_of(request) + (request.authorization.empty() ? "" : " with a token");
  const auto requests = [&] {
    const std::scoped_lock lock(mutex_);
    return refusals_.note(fmt::format("{} {} {}", problem.code, from, identity), 1, clock_.steady_now());
  }();
  if (!requests) return;
  const std::string times =
      *requests > 1 ? fmt::format(", {} times since this was last logged", *requests) : "";
  spdlog::warn("refused {} {} from {} ({}): {}{}", tracker::printable(request.method),
               tracker::printable(request.path), from, who, problem.code, times);
}

std::shared_ptr<const Access> Api::current_access() const {
  const std::scoped_lock lock(mutex_);
  return access_;
}

void Api::set_access(std::shared_ptr<const Access> access) {
  const std::scoped_lock lock(mutex_);
  access_ = std::move(access);
}

template <class T>
boost::asio::awaitable<T> Api::on_main_thread(boost::asio::awaitable<T> task) {
  if (context_.get_executor().running_in_this_thread()) {
    auto done = co_await std::move(task);
    co_return done;
  }
  auto done = co_await boost::asio::co_spawn(context_, std::move(task), boost::asio::use_awaitable);
  co_return done;
}

boost::asio::awaitable<HttpResponse> Api::handle(const HttpRequest& request) {
  if (request.path == "/v1/marks") {
    auto marked = co_await mark_by(request, [this](const HttpRequest& marks) { return read_marks(marks); });
    co_return marked;
  }
  if (request.path == "/v1/events/s3") {
    auto marked =
        co_await mark_by(request, [this](const HttpRequest& events) { return read_events(events); });
    co_return marked;
  }
  auto answered = co_await on_main_thread(handle_here(request));
  co_return answered;
}

boost::asio::awaitable<HttpResponse> Api::handle_here(const HttpRequest& request) {
  if (request.path == "/v1/peer/cycle") {
    auto answered = co_await peer_cycle(request);
    co_return answered;
  }
  if (request.path == "/v1/snapshot") {
    auto saved = co_await save_snapshot();
    co_return saved;
  }
  if (request.path == "/v1/drives/accept") {
    auto accepted = co_await accept_drive(request);
    co_return accepted;
  }
  if (request.path == "/v1/usage") {
    auto usage = co_await reports_.usage(request);
    co_return usage;
  }
  if (request.path == "/v1/scans") {
    auto scans = co_await reports_.scans(request);
    co_return scans;
  }
  if (request.path == "/v1/changes") {
    auto changes = co_await reports_.changes(request);
    co_return changes;
  }
  if (request.path == "/metrics") {
    auto scraping = metrics();
    auto scraped = co_await std::move(scraping);
    co_return scraped;
  }
  if (request.path == "/v1/drives") {
    auto listed = co_await drives();
    co_return listed;
  }
  if (request.path == "/v1/dirty") co_return dirty(request);
  if (request.path == "/v1/status") co_return status();
  if (request.path == "/readyz") co_return ready();
  co_return alive();
}

void Api::note_refused(const HttpRequest& request) {
  const Route* const route = find_route(request.path);
  if (route == nullptr || route->allowed != marking || request.method != "POST") return;
  const std::scoped_lock lock(mutex_);
  ++counters_.rejected;
}

HttpResponse Api::reject(const HttpRequest& request, const Problem& problem) {
  if (problem.status < 500) log_refusal(*current_access(), request, problem);
  const std::scoped_lock lock(mutex_);
  ++counters_.rejected;
  return to_response(problem);
}

std::unique_ptr<MarkReader> Api::take_reader() {
  const std::scoped_lock lock(mutex_);
  if (idle_readers_.empty()) return std::make_unique<MarkReader>(rules_, options_.drive_paths);
  auto reader = std::move(idle_readers_.back());
  idle_readers_.pop_back();
  return reader;
}

void Api::give_back(std::unique_ptr<MarkReader> reader) {
  const std::scoped_lock lock(mutex_);
  idle_readers_.push_back(std::move(reader));
}

// Whether it would hold up the other requests of its thread: by its size, or by holding its paths against the
// globs of namespace.exclude.
bool Api::is_large(const HttpRequest& request) const {
  constexpr std::size_t glob_bytes_max = 4 * MarkReader::small_body_bytes;
  const std::size_t bytes = request.body.size();
  return bytes > MarkReader::small_body_bytes || bytes * rules_.globs() > glob_bytes_max;
}

Api::MarkedOrProblem Api::read_marks(const HttpRequest& request) {
  Marked marked;
  auto reader = take_reader();
  // Also what can't be acknowledged is marked: it costs a directory read, and may be true.
  const auto ignored = reader->read(
      request, [&](std::span<const tracker::Mark> marks) { add(marked.outcome, tracker_.mark(marks)); });
  give_back(std::move(reader));
  if (!ignored) return ignored.error();
  marked.ignored = *ignored;
  return marked;
}

Api::MarkedOrProblem Api::read_events(const HttpRequest& request) {
  const auto events = parse_s3_events(request, rules_, options_.drive_paths);
  if (!events) return events.error();
  note_unknown_events(*events);
  note_invalid_keys(*events);
  Marked marked{tracker_.mark(events->marks), events->ignored};
  marked.outcome.marked -= events->further;
  return marked;
}

// Reads the request by `read`, which marks, and answers once the marks are as durable as configured.
template <class Read>
boost::asio::awaitable<HttpResponse> Api::mark_by(const HttpRequest& request, Read read) {
  MarkedOrProblem marked;
  if (is_large(request)) {
    auto task = call([&] { return read(request); });
    marked = co_await boost::asio::co_spawn(large_bodies_, std::move(task), boost::asio::use_awaitable);
  } else {
    marked = read(request);
  }
  if (!marked) co_return reject(request, marked.error());
  auto acknowledged = co_await acknowledge(request, marked->outcome, marked->ignored);
  co_return acknowledged;
}

// Once the marks are as durable as configured.
boost::asio::awaitable<HttpResponse> Api::acknowledge(const HttpRequest& request,
                                                      tracker::MarkOutcome outcome, std::uint64_t ignored) {
  if (!is_confirmed(outcome.position)) {
    const auto problem = co_await on_main_thread(confirm(outcome.position));
    if (problem) co_return reject(request, *problem);
  }
  const auto access = current_access();
  std::string identity = access->identity_of(request);
  {
    const std::scoped_lock lock(mutex_);
    counters_.accepted += outcome.marked;
    counters_.added += outcome.added;
    counters_.ignored += ignored;
    auto& identities = counters_.identities;
    const bool has_room = identities.size() < MarkCounters::identities_max;
    if (!has_room && !identities.contains(identity)) identity = "other";
    MarkCounters::OfIdentity& counted = identities[identity];
    counted.accepted += outcome.marked;
    counted.last_at = clock_.wall_now();
  }
  HttpResponse response;
  response.body =
      fmt::format(R"({{"marked":{},"ignored":{},"cycle":{}}})", outcome.marked, ignored, outcome.cycle.value);
  co_return response;
}

// Whether there is nothing to wait for, and nobody to ask.
bool Api::is_confirmed(tracker::JournalPosition position) const {
  return etcd_ == nullptr && persistence_.durable_position() >= position;
}

boost::asio::awaitable<std::optional<Problem>> Api::confirm(tracker::JournalPosition position) {
  const auto durable = co_await committer_.wait(position);
  if (!durable) {
    Problem problem{503, "not_durable", durable.error().message};
    co_return problem;
  }
  if (std::string trouble = etcd_ == nullptr ? "" : etcd_->trouble(); !trouble.empty()) {
    Problem problem{503, "not_a_member", std::move(trouble)};
    co_return problem;
  }
  co_return std::nullopt;
}

void Api::note_unknown_events(const EventMarks& events) {
  if (events.unknown_events == 0) return;
  const std::uint64_t before = [&] {
    const std::scoped_lock lock(mutex_);
    return std::exchange(counters_.unknown_events, counters_.unknown_events + events.unknown_events);
  }();
  if (before > 0) return;
  spdlog::warn(
      "S3 events named '{}' are not known here, and marked nothing; further unknown ones are only counted",
      events.unknown_event);
}

// In the log once a minute at most: any writer of the store can cause them.
void Api::note_invalid_keys(const EventMarks& events) {
  if (events.invalid_keys == 0) return;
  const auto unlogged = [&] {
    const std::scoped_lock lock(mutex_);
    counters_.invalid_keys += events.invalid_keys;
    return invalid_keys_.note("", events.invalid_keys, clock_.steady_now());
  }();
  if (!unlogged) return;
  spdlog::warn(
      "S3 events name objects that can be no path: {} that were not reported yet, '{}' among them, for which "
      "all of "
      "'{}' was marked",
      *unlogged, events.invalid_key, events.invalid_key_mark);
}

HttpResponse Api::dirty(const HttpRequest& request) const {
  if (const auto unknown = unknown_parameter(request, {"path", "since"})) return to_response(*unknown);
  const auto raw = request.query_value("path");
  if (!raw) return to_response({400, "invalid_request", "give the path to look up: /v1/dirty?path=a/b"});
  const auto since = parse_number(request.query_value("since").value_or("0"));
  if (!since) return to_response({400, "invalid_request", "'since' must be a cycle number"});
  const auto path = tracker::normalise_path(*raw);
  if (!path) return to_response(path_problem(path.error(), *raw, 0));

  const auto answer = tracker_.dirty(*path, {*since});
  json body{{"path", *path}, {"dirty", answer.latest.has_value()}, {"latest_cycle", nullptr}};
  if (answer.latest) body["latest_cycle"] = answer.latest->value;
  // A "no" says nothing of cycles that are no longer kept.
  body["oldest_cycle"] = answer.oldest_kept.value;
  return json_response(body);
}

template <class Render>
auto Api::render_status(Render render) const {
  const auto uptime = clock_.steady_now() - started_at_;
  const auto counters = [this] {
    const std::scoped_lock lock(mutex_);
    return counters_;
  }();
  return render(StatusInput{.node = options_.node,
                            .version = options_.version,
                            .uptime = uptime,
                            .tracker = tracker_.status(),
                            .counters = counters,
                            .last_save = saver_.last(),
                            .last_durable_save = saver_.last_durable(),
                            .failed_saves = saver_.failures(),
                            .durability = persistence_.durability(),
                            .journal = persistence_.journal_status(),
                            .trouble = committer_.trouble(),
                            .peers = peers_.states(),
                            .peer_tls = peers_.tls_expiry(),
                            .etcd = etcd_ == nullptr ? nullptr : &etcd_->status()});
}

HttpResponse Api::status() const {
  return render_status([](const StatusInput& input) { return json_response(status_json(input)); });
}

boost::asio::awaitable<HttpResponse> Api::metrics() {
  return metrics_.scrape([this] {
    const bool is_ready = troubles().empty();
    return render_status([&](const StatusInput& input) { return status_metrics(input, is_ready); });
  });
}

boost::asio::awaitable<HttpResponse> Api::peer_cycle(const HttpRequest& request) {
  const auto query = peer::parse_cycle_query(request.body);
  if (!query) {
    const bool is_json = query.error().code != std::errc::bad_message;
    const Problem problem{400, is_json ? "invalid_request" : "invalid_json", query.error().message};
    co_return to_response(problem);
  }
  if (query->cluster != options_.node.cluster) {
    co_return to_response({409, "wrong_cluster",
                           fmt::format("node '{}' belongs to cluster '{}', not to '{}'", options_.node.node,
                                       options_.node.cluster, tracker::printable(query->cluster))});
  }
  if (!tracker_.is_in_reach(query->request.current)) {
    co_return to_response(
        {409, "cycle_out_of_reach",
         fmt::format(
             "cycle {} is more than {} ahead of the one that node '{}' is in, which no cluster gets to by "
             "counting; see \"Cycle numbers out of reach\" in docs/cluster.md",
             query->request.current.value, tracker::CycleId::jump_max, options_.node.node)});
  }
  tracker::CycleRequest asked = query->request;
  // A cycle whose opening a crash would undo must not be answered for; what is there can be read.
  if (!committer_.trouble().empty()) asked.current = {};
  peer::CycleFrame frame{options_.node, options_.run, rules_.digest(), {}};
  auto answering = answer(tracker_, asked, std::move(frame));
  EncodedAnswer answered;
  if (asked.marks_wanted) {
    answered = co_await boost::asio::co_spawn(answers_, std::move(answering), boost::asio::use_awaitable);
  } else {
    answered = co_await std::move(answering);  // costs nothing, and need not wait behind merges
  }
  if (answered.has_advanced) saver_.save_soon();
  const auto durable = co_await committer_.wait(answered.position);
  if (!durable) co_return to_response({503, "not_durable", durable.error().message});
  HttpResponse response;
  response.content_type = peer::cycle_frame_content_type;
  response.body = std::move(answered.frame);
  co_return response;
}

// Behind a disk that hangs they would fill all connections.
std::optional<HttpResponse> Api::refuse_more_saves() const {
  if (saves_waiting_ < saves_waiting_max) return std::nullopt;
  return to_response({503, "overloaded", "too many requests wait for a save already"});
}

boost::asio::awaitable<HttpResponse> Api::save_snapshot() {
  if (auto busy = refuse_more_saves()) co_return *std::move(busy);
  ++saves_waiting_;
  const auto saved = co_await saver_.save();
  --saves_waiting_;
  if (!saved.durable()) {
    const Problem problem{503, "not_durable", "no drive took the snapshot; see 'snapshot' in /v1/status"};
    co_return to_response(problem);
  }
  co_return json_response(snapshot_json(saved));
}

boost::asio::awaitable<HttpResponse> Api::drives() {
  const auto states = co_await saver_.check_drives();
  const json list = drives_json(states);
  co_return json_response({{"drives", list}});
}

HttpResponse Api::last_drives() const {
  json list = json::array();
  if (const auto& last = saver_.last()) list = drives_json(last->drives);
  return json_response({{"drives", list}});
}

boost::asio::awaitable<HttpResponse> Api::accept_drive(const HttpRequest& request) {
  const auto path = request.query_value("path");
  if (!path || path->empty()) {
    co_return to_response({400, "invalid_request", "give the drive: /v1/drives/accept?path=/mnt/disk1"});
  }
  if (auto busy = refuse_more_saves()) co_return *std::move(busy);
  ++saves_waiting_;
  const auto done = co_await saver_.accept_drive(std::filesystem::path(*path));
  --saves_waiting_;
  if (!done && done.error().code == std::errc::invalid_argument) {
    co_return to_response({404, "not_found", done.error().message});
  }
  if (!done) co_return to_response({409, "drive_refused", done.error().message});
  spdlog::warn("the drive at {} was accepted: it is the one from now on", tracker::printable(*path));
  co_return last_drives();
}

HttpResponse Api::alive() const { return json_response({{"status", "ok"}}); }

std::vector<std::string> Api::troubles() const {
  std::vector<std::string> reasons = saver_.trouble();
  if (auto trouble = committer_.trouble(); !trouble.empty()) {
    reasons.push_back(fmt::format("journal: {}", trouble));
  }
  if (auto trouble = etcd_ == nullptr ? "" : etcd_->trouble(); !trouble.empty()) {
    reasons.push_back(std::move(trouble));
  }
  return reasons;
}

HttpResponse Api::ready() const {
  const std::vector<std::string> reasons = troubles();
  if (reasons.empty()) return json_response({{"status", "ready"}});
  auto response = to_response(
      {503, "not_ready", "some of what is marked may not be kept, or not be asked for; see the reasons"});
  json body = json::parse(response.body);
  body["reasons"] = reasons;
  response.body = body.dump(-1, ' ', false, json::error_handler_t::replace);
  return response;
}

}  // namespace spoor::daemon
