#include "daemon/api/reports.h"

#include <fmt/core.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "config/units.h"
#include "daemon/api/api_message.h"
#include "daemon/api/changes_report.h"
#include "daemon/process/task.h"
#include "daemon/status/status_json.h"
#include "peer/gather/handover.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/report_json.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_query.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t waiting_max = 16;
constexpr std::chrono::seconds time_max{10};

constexpr std::uint64_t children_default = 1'000;
constexpr std::uint64_t entries_max = 10'000;
constexpr std::uint64_t points_max = 10'000;

constexpr std::uint64_t scans_default = 20;
constexpr std::uint64_t scans_max = 1'000;
constexpr std::size_t reason_bytes_max = 1'000;

// The response to a failure to read the database.
HttpResponse error_response(const base::Error& error) {
  if (error.code == std::errc::no_such_file_or_directory)
    return to_response({404, "no_scan", no_scan_error().message});
  if (error.code == scanner::Errc::interrupted) {
    return to_response({503, "overloaded",
                        fmt::format("reading the scan database took over {} s; ask for less, or try later",
                                    time_max.count())});
  }
  return to_response({500, "database_failed", error.message});
}

struct UsageRequest : UsageTarget {
  bool of_cluster = false;
};

// Leaves `since` unchanged if the parameter is missing.
void read_since(const HttpRequest& request, base::WallTime now, QueryReader& query,
                std::optional<base::WallTime>& since) {
  const auto text = request.query_value("since");
  if (!text) return;
  const auto given = config::parse_since(*text, now);
  if (given) since = *given;
  if (!given) query.require(false, "'since': " + given.error().message);
}

std::string read_path(const HttpRequest& request, QueryReader& query) {
  const std::string_view raw = request.query_value("path").value_or("");
  auto path = scanner::parse_usage_path(raw);
  if (path) return *std::move(path);
  if (!query.problem) query.problem = path_problem(path.error(), raw);
  return {};
}

boost::system::result<UsageRequest, Problem> parse_usage_request(const HttpRequest& request,
                                                                 base::WallTime now) {
  QueryReader query{request, unknown_parameter(request, {"path", "depth", "sort", "limit", "since", "scope",
                                                         "absent", "owners"})};
  const std::string_view scope = request.query_value("scope").value_or("node");
  const std::string_view order_name = request.query_value("sort").value_or("size");
  const auto absent = request.query_value("absent");
  const auto order = scanner::parse_usage_order(order_name);
  std::uint64_t owners = 0;
  UsageRequest parsed;
  scanner::UsageOptions& options = parsed.options;
  parsed.path = read_path(request, query);
  parsed.order = order_name;
  parsed.of_cluster = scope == "cluster";
  options.absent_is_empty = absent.has_value();
  options.order = order.value_or(options.order);
  options.children_max = children_default;
  options.entries_max = entries_max;
  options.path_bytes_max = response_path_bytes_max;
  read_since(request, now, query, options.since);
  query.require(scope == "node" || parsed.of_cluster, "'scope' must be node or cluster");
  query.require(!absent || *absent == "empty", "'absent' must be empty");
  query.require(order.has_value(), "'sort' must be size, files, name or growth");
  query.require(order != scanner::UsageOrder::growth || options.since, "'sort=growth' needs 'since'");
  query.number("depth", 0, scanner::usage_depth_max, options.depth);
  query.number("limit", 1, entries_max, options.children_max);
  query.number("owners", 0, 1, owners);
  options.owners = owners == 1;
  if (query.problem) return *query.problem;
  return parsed;
}

base::Result<HttpResponse> read_usage(scanner::UsageDatabase& database, const UsageTarget& asked,
                                      const NodeLabel& node) {
  const auto usage = scanner::query_usage(database, asked.path, asked.options);
  if (!usage) return usage.error();
  const std::optional<scanner::Usage>& found = *usage;
  if (asked.path.empty() && (!found || found->is_absent)) return no_scan_error();
  if (!found) {
    return to_response(
        {404, "not_found",
         fmt::format("no directory '{}' was found by the last scan", base::printable(asked.path))});
  }
  json body = scanner::usage_json(*found);
  body["node"] = node.to_json();
  body["fullest_drive"] = space_json(node.fullest_drive);
  return json_response(body);
}

std::vector<KnownPeer> known_peers(const tracker::PeerBook& book) {
  std::vector<KnownPeer> known;
  for (const auto& [id, peer] : book) {
    if (peer.is_expected()) known.push_back({id.name, peer.home});
  }
  return known;
}

// As read_usage() responds to another node.
OwnUsage read_own_usage(const std::filesystem::path& file, UsageTarget asked) {
  OwnUsage own{no_scan_error(), {}};
  asked.options.absent_is_empty = true;
  asked.options.children_max = entries_max;
  auto database = scanner::UsageDatabase::open_read_only(file);
  auto usage = database ? scanner::query_usage(*database, asked.path, asked.options) : database.error();
  if (!usage) {
    const bool is_no_scan = usage.error().code == std::errc::no_such_file_or_directory;
    own.usage = is_no_scan ? no_scan_error() : usage.error();
  } else if (std::optional<scanner::Usage>& found = *usage;
             found && !(asked.path.empty() && found->is_absent)) {
    own.usage = *std::move(found);
  }
  const auto peers = database ? database->peers() : database.error();
  if (peers) own.known_peers = known_peers(*peers);
  return own;
}

struct HistoryRequest {
  std::string path;
  std::optional<base::WallTime> since;
  std::uint64_t points_max = daemon::points_max;
};

boost::system::result<HistoryRequest, Problem> parse_history_request(const HttpRequest& request,
                                                                     base::WallTime now) {
  QueryReader query{request, unknown_parameter(request, {"path", "since", "limit"})};
  HistoryRequest parsed;
  parsed.path = read_path(request, query);
  read_since(request, now, query, parsed.since);
  query.number("limit", 1, points_max, parsed.points_max);
  if (query.problem) return *query.problem;
  return parsed;
}

HttpResponse no_history_response(std::string_view path, const scanner::UsageHistory& history) {
  const char* why = "it was not found, or history.depth and history.prefixes leave it out";
  if (!history.recorded_since) why = "no history is kept; set history.keep, then run 'spoor scan'";
  if (history.is_full) why = "it was not found or is left out, or the history has reached its bounds";
  return to_response(
      {404, "no_history", fmt::format("there is no history of '{}': {}", base::printable(path), why)});
}

base::Result<HttpResponse> read_history(scanner::UsageDatabase& database, const HistoryRequest& asked,
                                        const NodeLabel& node) {
  const auto history = scanner::query_history(database, asked.path, asked.since, asked.points_max);
  if (!history) return history.error();
  if (!history->as_of) return no_scan_error();
  if (history->points.empty()) return no_history_response(asked.path, *history);
  json body = scanner::history_json(asked.path, *history);
  body["node"] = node.to_json();
  return json_response(body);
}

}  // namespace

base::Result<peer::UnreadFrom> unread_from(const std::filesystem::path& database, const tracker::PeerId& id) {
  auto scans = scanner::UsageDatabase::open_read_only(database);
  if (!scans && scans.error().code == std::errc::no_such_file_or_directory) return peer::UnreadFrom();
  if (!scans) return scans.error();
  const auto latest = scanner::latest_scan(*scans);
  if (!latest) return latest.error();
  if (*latest == 0) return peer::UnreadFrom();
  // Scans that read this node alone need nothing of another one, and walk everything before they do.
  const auto own_marks_of = scans->own_marks_of();
  if (!own_marks_of) return own_marks_of.error();
  if (!own_marks_of->empty() && *own_marks_of != id.name) return peer::UnreadFrom();
  const auto book = scans->peers();
  if (!book) return book.error();
  return peer::unread_from(*book, id);
}

Reports::Reports(std::filesystem::path database, boost::asio::thread_pool& pool, const base::Clock& clock,
                 ScanWaits& waits, ReportsOptions options)
    : database_(std::move(database)),
      pool_(pool),
      clock_(clock),
      waits_(waits),
      options_(std::move(options)),
      cluster_(options_.cluster),
      readers_(waiting_max),
      askers_(waiting_max) {}

boost::asio::awaitable<HttpResponse> Reports::usage(const HttpRequest& request, std::string caller) {
  auto asked = parse_usage_request(request, clock_.wall_now());
  if (!asked) return at_once(to_response(asked.error()));
  asked->options.should_stop = time_limit();
  asked->options.copies = options_.copies;
  auto fullest_drive = options_.fullest_drive();
  if (asked->of_cluster) {
    return run(asking_, askers_, std::move(caller),
               [this, asked = *std::move(asked), members = options_.members(), fullest_drive] {
                 OwnUsage own = read_own_usage(database_, asked);
                 own.fullest_drive = fullest_drive;
                 return cluster_.ask(asked, own, members);
               });
  }
  NodeLabel node = options_.cluster.own;
  node.fullest_drive = std::move(fullest_drive);
  return read(std::move(caller),
              [asked = *std::move(asked), node = std::move(node)](scanner::UsageDatabase& database) {
                return read_usage(database, asked, node);
              });
}

boost::asio::awaitable<HttpResponse> Reports::history(const HttpRequest& request, std::string caller) {
  const auto asked = parse_history_request(request, clock_.wall_now());
  if (!asked) return at_once(to_response(asked.error()));
  return read(std::move(caller),
              [asked = *asked, node = options_.cluster.own](scanner::UsageDatabase& database) {
                return read_history(database, asked, node);
              });
}

boost::asio::awaitable<HttpResponse> Reports::scans(const HttpRequest& request, std::string caller) {
  QueryReader query{request, unknown_parameter(request, {"limit"})};
  std::uint64_t limit = scans_default;
  query.number("limit", 1, scans_max, limit);
  if (query.problem) return at_once(to_response(*query.problem));
  return read(std::move(caller), [limit](scanner::UsageDatabase& database) -> base::Result<HttpResponse> {
    const auto scans = database.scans(limit, reason_bytes_max);
    if (!scans) return scans.error();
    return json_response(scanner::scans_json(*scans));
  });
}

boost::asio::awaitable<HttpResponse> Reports::changes(const HttpRequest& request, std::string caller) {
  const auto asked = parse_changes_request(request);
  if (!asked) co_return to_response(asked.error());
  if (asked->waits()) {
    std::function<bool()> is_so = [file = database_, asked = *asked] { return has_news(file, asked); };
    const auto refused = co_await waits_.wait_for_news(request, caller, std::move(is_so), asked->wait);
    if (refused) co_return to_response(*refused);
  }
  Read reading = [asked = *asked, should_stop = time_limit()](scanner::UsageDatabase& database) {
    return read_changes_page(database, asked, should_stop);
  };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

boost::asio::awaitable<HttpResponse> Reports::unread(const HttpRequest& request, std::string caller) {
  const NodeLabel& own = options_.cluster.own;
  const auto query = read_cycle_query(request, own.name, own.cluster);
  if (!query) return at_once(to_response(query.error()));
  if (!query->member) return at_once(to_response({400, "invalid_request", "give the tracker as 'member'"}));
  return run(pool_, readers_, std::move(caller), [file = database_, id = query->member->id] {
    const auto from = unread_from(file, id);
    if (!from) return error_response(from.error());
    HttpResponse response;
    response.body = peer::unread_json(*from);
    return response;
  });
}

// From now on, not from when the reading begins: the time spent in the queue counts as well.
std::function<bool()> Reports::time_limit() const {
  const base::SteadyTime until = clock_.steady_now() + time_max;
  return [&clock = clock_, until] { return clock.steady_now() > until; };
}

// SQLite may wait for a disk, and sums up all directories.
boost::asio::awaitable<HttpResponse> Reports::read(std::string caller, Read reading) {
  return run(pool_, readers_, std::move(caller), [file = database_, reading = std::move(reading)] {
    auto database = scanner::UsageDatabase::open_read_only(file);
    auto response = database ? reading(*database) : base::Result<HttpResponse>(database.error());
    return response ? *std::move(response) : error_response(response.error());
  });
}

boost::asio::awaitable<HttpResponse> Reports::run(boost::asio::thread_pool& pool, CallerQueue& queue,
                                                  std::string caller, std::function<HttpResponse()> work) {
  CallerQueue::Place place(queue, std::move(caller));
  if (!place.is_held()) {
    const char* const what = &pool == &pool_ ? "the scan database" : "the members of the cluster";
    co_return to_response({503, "overloaded",
                           fmt::format("too many requests wait for {}, of this client or of all ({}); try "
                                       "again later",
                                       what, waiting_max)});
  }
  co_await place.wait_for_turn();
  auto response = co_await run_on(pool, std::move(work));
  co_return response;
}

}  // namespace spoor::daemon
