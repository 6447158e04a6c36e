#include "daemon/api/reports.h"

#include <fmt/core.h>

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/file_system.h"
#include "base/number.h"
#include "base/printable.h"
#include "config/units.h"
#include "daemon/api/api_message.h"
#include "daemon/api/feed_token.h"
#include "daemon/process/task.h"
#include "daemon/status/status_json.h"
#include "peer/gather/cycle_exchange.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/report_json.h"
#include "scanner/store/history_query.h"
#include "scanner/store/usage_database.h"
#include "scanner/store/usage_query.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr std::size_t waiting_max = 16;
constexpr std::chrono::seconds time_max{10};

constexpr std::size_t waits_max = 64;
constexpr std::size_t starts_max = 16;
constexpr std::chrono::seconds changes_wait_max{60};
constexpr std::chrono::seconds changes_wait_period{1};
constexpr std::chrono::seconds scan_start_max{10};
constexpr std::chrono::milliseconds scan_start_period{100};
constexpr const char* scan_request_name = "scan.request";

constexpr std::uint64_t children_default = 1'000;
constexpr std::uint64_t entries_max = 10'000;
constexpr std::uint64_t path_bytes_max = std::uint64_t{2} << 20U;

constexpr std::uint64_t points_max = 10'000;

constexpr std::uint64_t scans_default = 20;
constexpr std::uint64_t scans_max = 1'000;
constexpr std::size_t reason_bytes_max = 1'000;

constexpr std::uint64_t changes_default = 1'000;
constexpr std::uint64_t changes_limit_max = 10'000;
// In base64 a `next` of that many bytes still fits into the header of a request.
constexpr std::size_t place_bytes_max = 8U << 10U;

constexpr const char* no_scan_text = "there was no scan of this node yet; run 'spoor scan'";

HttpResponse no_scan_response() { return to_response({404, "no_scan", no_scan_text}); }

base::Error no_scan_error() {
  return {std::make_error_code(std::errc::no_such_file_or_directory), no_scan_text};
}

HttpResponse error_response(const base::Error& error) {
  if (error.code == std::errc::no_such_file_or_directory) return no_scan_response();
  if (error.code == scanner::Errc::interrupted) {
    return to_response({503, "overloaded",
                        fmt::format("reading the scan database took over {} s; ask for less, or try later",
                                    time_max.count())});
  }
  return to_response({500, "database_failed", error.message});
}

struct Bounds {
  std::uint64_t min;
  std::uint64_t max;
};

// Leaves `number` unchanged if the parameter is missing.
std::optional<Problem> read_number(const HttpRequest& request, const char* name, Bounds bounds,
                                   std::uint64_t& number) {
  const auto text = request.query_value(name);
  if (!text) return std::nullopt;
  const auto given = base::parse_number<std::uint64_t>(*text);
  if (!given || *given < bounds.min || *given > bounds.max) {
    return Problem{400, "invalid_request",
                   fmt::format("'{}' must be a number from {} to {}", name, bounds.min, bounds.max)};
  }
  number = *given;
  return std::nullopt;
}

HttpResponse too_many_waits(std::size_t most) {
  return to_response({503, "overloaded",
                      fmt::format("too many requests wait for a scan, of this client or of all ({}); try "
                                  "again later",
                                  most)});
}

struct UsageRequest : UsageTarget {
  bool of_cluster = false;
};

// Leaves `since` unchanged if the parameter is missing.
std::optional<Problem> read_since(const HttpRequest& request, base::WallTime now,
                                  std::optional<base::WallTime>& since) {
  const auto text = request.query_value("since");
  if (!text) return std::nullopt;
  const auto given = config::parse_since(*text, now);
  if (!given) return Problem{400, "invalid_request", fmt::format("'since': {}", given.error().message)};
  since = *given;
  return std::nullopt;
}

boost::system::result<UsageRequest, Problem> parse_usage_request(const HttpRequest& request,
                                                                 base::WallTime now) {
  if (auto unknown = unknown_parameter(
          request, {"path", "depth", "sort", "limit", "since", "scope", "absent", "owners"}))
    return *unknown;
  const std::string_view raw = request.query_value("path").value_or("");
  auto path = scanner::parse_usage_path(raw);
  if (!path) return path_problem(path.error(), raw);
  const auto scope = request.query_value("scope").value_or("node");
  if (scope != "node" && scope != "cluster")
    return Problem{400, "invalid_request", "'scope' must be node or cluster"};
  const auto absent = request.query_value("absent");
  if (absent && *absent != "empty") return Problem{400, "invalid_request", "'absent' must be empty"};
  const std::string_view order_name = request.query_value("sort").value_or("size");
  const auto order = scanner::parse_usage_order(order_name);
  if (!order) return Problem{400, "invalid_request", "'sort' must be size, files, name or growth"};
  UsageRequest parsed;
  parsed.path = *std::move(path);
  parsed.order = order_name;
  parsed.of_cluster = scope == "cluster";
  parsed.options.absent_is_empty = absent.has_value();
  parsed.options.order = *order;
  parsed.options.children_max = children_default;
  parsed.options.entries_max = entries_max;
  parsed.options.path_bytes_max = path_bytes_max;
  if (auto wrong = read_since(request, now, parsed.options.since)) return *wrong;
  if (*order == scanner::UsageOrder::growth && !parsed.options.since)
    return Problem{400, "invalid_request", "'sort=growth' needs 'since'"};
  if (auto wrong = read_number(request, "depth", {0, scanner::usage_depth_max}, parsed.options.depth))
    return *wrong;
  if (auto wrong = read_number(request, "limit", {1, entries_max}, parsed.options.children_max))
    return *wrong;
  std::uint64_t owners = 0;
  if (auto wrong = read_number(request, "owners", {0, 1}, owners)) return *wrong;
  parsed.options.owners = owners == 1;
  return parsed;
}

HttpResponse read_usage(const std::filesystem::path& file, const UsageTarget& asked, const NodeLabel& node) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return error_response(database.error());
  const auto usage = scanner::query_usage(*database, asked.path, asked.options);
  if (!usage) return error_response(usage.error());
  const std::optional<scanner::Usage>& found = *usage;
  if (asked.path.empty() && (!found || found->is_absent)) return no_scan_response();
  if (found) {
    json body = scanner::usage_json(*found);
    body["node"] = node.to_json();
    body["fullest_drive"] = space_json(node.fullest_drive);
    return json_response(body);
  }
  return to_response(
      {404, "not_found",
       fmt::format("no directory '{}' was found by the last scan", base::printable(asked.path))});
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
  if (auto unknown = unknown_parameter(request, {"path", "since", "limit"})) return *unknown;
  const std::string_view raw = request.query_value("path").value_or("");
  auto path = scanner::parse_usage_path(raw);
  if (!path) return path_problem(path.error(), raw);
  HistoryRequest parsed;
  parsed.path = *std::move(path);
  if (auto wrong = read_since(request, now, parsed.since)) return *wrong;
  if (auto wrong = read_number(request, "limit", {1, points_max}, parsed.points_max)) return *wrong;
  return parsed;
}

HttpResponse no_history_response(std::string_view path, const scanner::UsageHistory& history) {
  const char* why = "it was not found, or history.depth and history.prefixes leave it out";
  if (!history.recorded_since) why = "no history is kept; set history.keep, then run 'spoor scan'";
  if (history.is_full) why = "it was not found or is left out, or the history has reached its bounds";
  return to_response(
      {404, "no_history", fmt::format("there is no history of '{}': {}", base::printable(path), why)});
}

HttpResponse read_history(const std::filesystem::path& file, const HistoryRequest& asked,
                          const NodeLabel& node) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return error_response(database.error());
  const auto history = scanner::query_history(*database, asked.path, asked.since, asked.points_max);
  if (!history) return error_response(history.error());
  if (!history->as_of) return no_scan_response();
  if (history->points.empty()) return no_history_response(asked.path, *history);
  json body = scanner::history_json(asked.path, *history);
  body["node"] = node.to_json();
  return json_response(body);
}

HttpResponse read_scans(const std::filesystem::path& file, std::uint64_t count_max) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return error_response(database.error());
  const auto scans = database->scans(count_max, reason_bytes_max);
  if (!scans) return error_response(scans.error());
  return json_response(scanner::scans_json(*scans));
}

struct ChangesRequest {
  std::uint64_t since = 0;
  std::optional<std::string> feed;   // that `since` is a scan of
  std::optional<FeedPlace> goes_on;  // a further page
  bool is_first = false;             // without `since`: from the last scan on
  bool files = false;
  std::uint64_t changes_max = changes_default;
  std::chrono::milliseconds wait{0};  // for a scan after `since`
};

boost::system::result<ChangesRequest, Problem> parse_changes_request(const HttpRequest& request) {
  if (auto unknown = unknown_parameter(request, {"since", "feed", "files", "next", "limit", "wait"}))
    return *unknown;
  ChangesRequest parsed;
  if (auto wrong = read_number(request, "limit", {1, changes_limit_max}, parsed.changes_max)) return *wrong;
  if (const auto text = request.query_value("wait")) {
    const auto wait = config::parse_duration(*text);
    if (!wait || *wait > changes_wait_max) {
      return Problem{400, "invalid_request",
                     fmt::format("'wait' must be a time up to {} s, such as 30s", changes_wait_max.count())};
    }
    parsed.wait = *wait;
  }
  const auto next = request.query_value("next");
  const bool has_since = request.query_value("since").has_value();
  const auto feed = request.query_value("feed");
  if (next) {
    if (has_since || feed || request.query_value("files")) {
      return Problem{400, "invalid_request", "give 'next' without 'since', 'feed' and 'files'"};
    }
    parsed.goes_on = from_token(*next);
    if (!parsed.goes_on) {
      return Problem{400, "invalid_request", "'next' must be what the page before gave as 'next'"};
    }
    parsed.since = parsed.goes_on->since;
    parsed.feed = parsed.goes_on->feed;
    parsed.files = parsed.goes_on->file.has_value();
    return parsed;
  }
  parsed.is_first = !has_since;
  if (!has_since && feed)
    return Problem{400, "invalid_request", "give 'feed' with the 'since' that is of it"};
  constexpr std::uint64_t scan_max = std::numeric_limits<std::int64_t>::max();
  if (auto wrong = read_number(request, "since", {0, scan_max}, parsed.since)) return *wrong;
  if (feed) parsed.feed = *feed;
  std::uint64_t files = 0;
  if (auto wrong = read_number(request, "files", {0, 1}, files)) return *wrong;
  parsed.files = files == 1;
  return parsed;
}

// One page: complete entries, within the bounds; an entry larger than that is a page of its own. The page
// exceeds the bounds where it can't end: paths on a drive may be longer than those of marks.
class ChangesPage {
 public:
  explicit ChangesPage(std::uint64_t changes_max) : changes_max_(changes_max) {}

  // Returns false, adding nothing, if the page is full.
  bool add(const scanner::FeedEntry& entry) {
    json changes = scanner::changes_json(entry);
    const bool fits =
        changes_.size() + changes.size() <= changes_max_ && path_bytes_ + entry.path.size() <= path_bytes_max;
    has_more_ = !fits && can_end();
    if (has_more_) return false;
    for (json& change : changes) changes_.push_back(std::move(change));
    path_bytes_ += entry.path.size();
    reported_.go_on_behind(entry);
    return true;
  }

  json to_json(FeedPlace place) const {
    json page{{"feed", place.feed},
              {"since", place.since},
              {"until", place.until},
              {"changes", changes_},
              {"next", nullptr}};
    if (has_more_) {
      place.after = reported_.after.value_or("");
      if (place.file) place.file = reported_.after_file;
      page["next"] = to_token(place);
    }
    return page;
  }

 private:
  bool can_end() const {
    return reported_.after && reported_.after->size() + reported_.after_file.size() <= place_bytes_max;
  }

  const std::uint64_t changes_max_;
  json changes_ = json::array();
  std::uint64_t path_bytes_ = 0;
  scanner::FeedRange reported_;
  bool has_more_ = false;
};

HttpResponse reset_response(const std::string& feed, std::uint64_t latest) {
  return to_response(
      {.status = 410,
       .code = "reset",
       .detail = fmt::format("the changes since then are not kept: read everything again, then continue "
                             "from scan {}",
                             latest),
       .feed = feed,
       .scan = latest});
}

// To a new reader.
HttpResponse first_response(const std::string& feed, std::uint64_t latest) {
  return json_response({{"feed", feed},
                        {"since", latest},
                        {"until", latest},
                        {"everything", true},
                        {"changes", json::array()},
                        {"next", nullptr}});
}

// Whether a reader that has the changes until `since` is to be responded to now: there is a further scan, or
// an error.
bool has_news(const std::filesystem::path& file, const ChangesRequest& asked) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return true;
  const auto feed = scanner::feed_id(*database);
  if (!feed || (asked.feed && *asked.feed != *feed)) return true;
  const auto latest = scanner::latest_scan(*database);
  return !latest || *latest != asked.since;
}

HttpResponse no_files_response() {
  return to_response(
      {404, "no_files",
       "the scans of this node do not keep the names of files; set scan.file_feed to true in its "
       "configuration, then run 'spoor scan'"});
}

HttpResponse read_changes_page(const std::filesystem::path& file, const ChangesRequest& asked,
                               const std::function<bool()>& should_stop) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return error_response(database.error());
  const auto feed = scanner::feed_id(*database);
  if (!feed) return error_response(feed.error());
  const auto latest = scanner::latest_scan(*database);
  if (!latest) return error_response(latest.error());
  if (*latest == 0) return no_scan_response();
  if (asked.feed && *asked.feed != *feed) return reset_response(*feed, *latest);
  if (asked.files) {
    const auto keeps_files = scanner::keeps_files(*database);
    if (!keeps_files) return error_response(keeps_files.error());
    if (!*keeps_files) return no_files_response();
  }
  if (asked.is_first) return first_response(*feed, *latest);
  scanner::FeedRange range{.since = asked.since, .until = {}, .after = {}, .files = asked.files};
  if (asked.goes_on) {
    range.until = asked.goes_on->until;
    range.after = asked.goes_on->after;
    range.after_file = asked.goes_on->file.value_or("");
  }
  ChangesPage page(asked.changes_max);
  const auto until = scanner::read_changes(
      *database, range, [&](const scanner::FeedEntry& entry) { return page.add(entry); }, should_stop);
  if (!until) return error_response(until.error());
  const std::optional<std::uint64_t>& kept_until = *until;
  // A place beyond the last scan is from before the database was replaced by an older copy of itself.
  if (!kept_until || (range.until && *kept_until < *range.until)) return reset_response(*feed, *latest);
  FeedPlace place{.feed = *feed, .since = asked.since, .until = *kept_until, .after = {}};
  if (asked.files) place.file.emplace();
  return json_response(page.to_json(std::move(place)));
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
                 Timers& timers, ReportsOptions options)
    : database_(std::move(database)),
      pool_(pool),
      clock_(clock),
      timers_(timers),
      options_(std::move(options)),
      cluster_(options_.cluster),
      readers_(waiting_max),
      askers_(waiting_max),
      waiters_(waits_max),
      starters_(starts_max) {
  std::error_code error;  // of a daemon that was killed meanwhile, it would start a scan some day
  std::filesystem::remove(scan_request(), error);
}

std::filesystem::path Reports::scan_request() const { return database_.parent_path() / scan_request_name; }

void Reports::stop() {
  is_stopped_ = true;
  for (Timer* const wait : waits_) wait->cancel();
}

Reports::Wait::Wait(Reports& owner) : reports(owner), timer(owner.timers_.make()) {
  reports.waits_.insert(timer.get());
}

Reports::Wait::~Wait() { reports.waits_.erase(timer.get()); }

boost::asio::awaitable<void> Reports::wait_until(std::function<bool()> is_so, WaitTimes times) {
  const base::SteadyTime until = clock_.steady_now() + times.most;
  const Wait wait(*this);
  bool is_over = false;
  while (!is_over && !is_stopped_) {
    std::function<bool()> asking = is_so;
    is_over = co_await run_on(pool_, std::move(asking));
    if (is_over || is_stopped_ || clock_.steady_now() >= until) break;
    is_over = !co_await wait.timer->wait(times.period);
  }
}

boost::asio::awaitable<HttpResponse> Reports::start_scan(const HttpRequest& request, std::string caller) {
  if (auto unknown = unknown_parameter(request, {})) co_return to_response(*unknown);
  const CallerQueue::Place place(starters_, std::move(caller));
  if (!place.is_held()) co_return too_many_waits(starts_max);
  ++starting_;  // from before the file is made: no other request withdraws it
  const std::filesystem::path file = scan_request();
  std::function<base::Result<>()> asking = [file] {
    base::PosixFileSystem files;
    const auto made = files.create(file);
    return made ? base::Result<>() : made.error();
  };
  const base::Result<> asked = co_await run_on(pool_, std::move(asking));
  if (!asked) {
    --starting_;
    co_return to_response({503, "not_started", asked.error().message});
  }
  std::function<bool()> is_taken = [file] {
    std::error_code error;
    return !std::filesystem::exists(file, error);
  };
  const WaitTimes times{scan_start_max, scan_start_period};
  co_await wait_until(is_taken, times);
  --starting_;
  const bool is_started = co_await run_on(pool_, std::move(is_taken));
  if (!is_started) {
    // A request that no unit takes must not start a scan in a week; the last one that waits withdraws it.
    std::function<bool()> withdrawing = [file] {
      std::error_code error;
      return std::filesystem::remove(file, error);
    };
    if (starting_ == 0) co_await run_on(pool_, std::move(withdrawing));
    co_return to_response(
        {503, "not_started",
         "no scan has started within 10 s: one is running, or spoor-scan.path, which starts "
         "it, is not enabled: systemctl enable --now spoor-scan.path"});
  }
  co_return json_response({{"started", true}});
}

boost::asio::awaitable<HttpResponse> Reports::usage(const HttpRequest& request, std::string caller) {
  auto asked = parse_usage_request(request, clock_.wall_now());
  if (!asked) co_return to_response(asked.error());
  asked->options.should_stop = time_limit();
  asked->options.copies = options_.copies;
  auto fullest_drive = options_.fullest_drive();
  std::function<HttpResponse()> reading;
  if (asked->of_cluster) {
    reading = [this, asked = *std::move(asked), members = options_.members(), fullest_drive] {
      OwnUsage own = read_own_usage(database_, asked);
      own.fullest_drive = fullest_drive;
      return cluster_.ask(asked, own, members);
    };
    auto response = co_await run(asking_, askers_, std::move(caller), std::move(reading));
    co_return response;
  }
  NodeLabel node = options_.cluster.own;
  node.fullest_drive = std::move(fullest_drive);
  reading = [file = database_, asked = *std::move(asked), node = std::move(node)] {
    return read_usage(file, asked, node);
  };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

boost::asio::awaitable<HttpResponse> Reports::history(const HttpRequest& request, std::string caller) {
  auto asked = parse_history_request(request, clock_.wall_now());
  if (!asked) co_return to_response(asked.error());
  std::function<HttpResponse()> reading = [file = database_, asked = *std::move(asked),
                                           node = options_.cluster.own] {
    return read_history(file, asked, node);
  };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

boost::asio::awaitable<HttpResponse> Reports::scans(const HttpRequest& request, std::string caller) {
  if (auto unknown = unknown_parameter(request, {"limit"})) co_return to_response(*unknown);
  std::uint64_t limit = scans_default;
  const Bounds bounds{1, scans_max};
  if (auto wrong = read_number(request, "limit", bounds, limit)) co_return to_response(*wrong);
  std::function<HttpResponse()> reading = [file = database_, limit] { return read_scans(file, limit); };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

boost::asio::awaitable<HttpResponse> Reports::changes(const HttpRequest& request, std::string caller) {
  auto asked = parse_changes_request(request);
  if (!asked) co_return to_response(asked.error());
  if (asked->wait > std::chrono::milliseconds::zero() && !asked->is_first && !asked->goes_on) {
    const CallerQueue::Place place(waiters_, caller);
    if (!place.is_held()) co_return too_many_waits(waits_max);
    std::function<bool()> is_so = [file = database_, asked = *asked] { return has_news(file, asked); };
    const WaitTimes times{asked->wait, changes_wait_period};
    co_await wait_until(std::move(is_so), times);
  }
  std::function<HttpResponse()> reading = [file = database_, asked = *std::move(asked),
                                           should_stop = time_limit()] {
    return read_changes_page(file, asked, should_stop);
  };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

boost::asio::awaitable<HttpResponse> Reports::unread(const HttpRequest& request, std::string caller) {
  const auto query = peer::parse_cycle_query(request.body);
  if (!query) {
    const bool is_json = query.error().code != std::errc::bad_message;
    co_return to_response({400, is_json ? "invalid_request" : "invalid_json", query.error().message});
  }
  if (!query->member) co_return to_response({400, "invalid_request", "give the tracker as 'member'"});
  const NodeLabel& own = options_.cluster.own;
  if (query->cluster != own.cluster) {
    co_return to_response({409, "wrong_cluster",
                           fmt::format("node '{}' belongs to cluster '{}', not to '{}'", own.name,
                                       own.cluster, base::printable(query->cluster))});
  }
  std::function<HttpResponse()> reading = [file = database_, id = query->member->id] {
    const auto from = unread_from(file, id);
    if (!from) return error_response(from.error());
    HttpResponse response;
    response.body = peer::unread_json(*from);
    return response;
  };
  auto response = co_await read(std::move(caller), std::move(reading));
  co_return response;
}

// From now on, not from when the reading begins: the time spent in the queue counts as well.
std::function<bool()> Reports::time_limit() const {
  const base::SteadyTime until = clock_.steady_now() + time_max;
  return [&clock = clock_, until] { return clock.steady_now() > until; };
}

// SQLite may wait for a disk, and sums up all directories.
boost::asio::awaitable<HttpResponse> Reports::read(std::string caller,
                                                   std::function<HttpResponse()> reading) {
  return run(pool_, readers_, std::move(caller), std::move(reading));
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
