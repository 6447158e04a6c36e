#include "daemon/api/changes_report.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/base64.h"
#include "base/number.h"
#include "config/units.h"
#include "daemon/api/api_message.h"
#include "scanner/feed/change_feed.h"
#include "scanner/report_json.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

constexpr std::string_view version = "1";
constexpr std::string_view version_with_files = "2";
constexpr std::string_view before_file = "//";  // in no path, and no name of a file
constexpr std::size_t group_digits = 4;         // of base64

constexpr std::chrono::seconds wait_max{60};
constexpr std::uint64_t changes_limit_max = 10'000;
// In base64 a `next` of that many bytes still fits into the header of a request.
constexpr std::size_t place_bytes_max = 8U << 10U;

// Takes the text before the next space; nothing if there is no space.
std::optional<std::string_view> take_word(std::string_view& text) {
  const std::size_t end = text.find(' ');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end + 1);
  return word;
}

std::optional<std::uint64_t> take_number(std::string_view& text) {
  const auto word = take_word(text);
  return word ? base::parse_number<std::uint64_t>(*word) : std::nullopt;
}

// The directory, and the file after it if files are listed.
bool take_place(std::string_view text, bool with_files, FeedPlace& place) {
  if (with_files) {
    const std::size_t end = text.rfind(before_file);
    if (end == std::string_view::npos) return false;
    place.file = text.substr(end + before_file.size());
    text = text.substr(0, end);
  }
  place.after = text;
  return true;
}

// One page: complete entries, within the bounds; an entry larger than that is a page of its own. The page
// exceeds the bounds where it can't end: paths on a drive may be longer than those of marks.
class ChangesPage {
 public:
  explicit ChangesPage(std::uint64_t changes_max) : changes_max_(changes_max) {}

  // Returns false, adding nothing, if the page is full.
  bool add(const scanner::FeedEntry& entry) {
    json changes = scanner::changes_json(entry);
    const bool fits = changes_.size() + changes.size() <= changes_max_ &&
                      path_bytes_ + entry.path.size() <= response_path_bytes_max;
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

HttpResponse no_files_response() {
  return to_response(
      {404, "no_files",
       "the scans of this node do not keep the names of files; set scan.file_feed to true in its "
       "configuration, then run 'spoor scan'"});
}

}  // namespace

std::string to_token(const FeedPlace& place) {
  std::string text = fmt::format("{} {} {} {} {}", place.file ? version_with_files : version, place.feed,
                                 place.since, place.until, place.after);
  if (place.file) text.append(before_file).append(*place.file);
  std::string token = base::to_base64(text);
  std::replace(token.begin(), token.end(), '+', '-');
  std::replace(token.begin(), token.end(), '/', '_');
  token.erase(std::find(token.begin(), token.end(), '='), token.end());
  return token;
}

std::optional<FeedPlace> from_token(std::string_view token) {
  if (token.find_first_of("+/=") != std::string_view::npos) return std::nullopt;
  std::string standard(token);
  std::replace(standard.begin(), standard.end(), '-', '+');
  std::replace(standard.begin(), standard.end(), '_', '/');
  standard.append((group_digits - standard.size() % group_digits) % group_digits, '=');
  const auto bytes = base::from_base64(standard);
  if (!bytes) return std::nullopt;
  std::string_view rest = *bytes;
  const auto its_version = take_word(rest);
  const bool with_files = its_version == version_with_files;
  if (!with_files && its_version != version) return std::nullopt;
  const auto feed = take_word(rest);
  const auto since = take_number(rest);
  const auto until = take_number(rest);
  if (!feed || !since || !until || *since > *until) return std::nullopt;
  FeedPlace place{.feed = std::string(*feed), .since = *since, .until = *until, .after = {}};
  if (!take_place(rest, with_files, place)) return std::nullopt;
  return place;
}

boost::system::result<ChangesRequest, Problem> parse_changes_request(const HttpRequest& request) {
  QueryReader query{request, unknown_parameter(request, {"since", "feed", "files", "next", "limit", "wait"})};
  ChangesRequest parsed;
  query.number("limit", 1, changes_limit_max, parsed.changes_max);
  if (const auto text = request.query_value("wait")) {
    const auto wait = config::parse_duration(*text);
    query.require(wait && *wait <= wait_max,
                  fmt::format("'wait' must be a time up to {} s, such as 30s", wait_max.count()));
    if (wait) parsed.wait = *wait;
  }
  const bool has_since = request.query_value("since").has_value();
  const auto feed = request.query_value("feed");
  if (const auto next = request.query_value("next")) {
    query.require(!has_since && !feed && !request.query_value("files"),
                  "give 'next' without 'since', 'feed' and 'files'");
    parsed.goes_on = from_token(*next);
    query.require(parsed.goes_on.has_value(), "'next' must be what the page before gave as 'next'");
    if (query.problem) return *query.problem;
    parsed.since = parsed.goes_on->since;
    parsed.feed = parsed.goes_on->feed;
    parsed.files = parsed.goes_on->file.has_value();
    return parsed;
  }
  parsed.is_first = !has_since;
  query.require(has_since || !feed, "give 'feed' with the 'since' that is of it");
  query.number("since", 0, std::numeric_limits<std::int64_t>::max(), parsed.since);
  if (feed) parsed.feed = *feed;
  std::uint64_t files = 0;
  query.number("files", 0, 1, files);
  parsed.files = files == 1;
  if (query.problem) return *query.problem;
  return parsed;
}

bool has_news(const std::filesystem::path& file, const ChangesRequest& asked) {
  auto database = scanner::UsageDatabase::open_read_only(file);
  if (!database) return true;
  const auto feed = scanner::feed_id(*database);
  if (!feed || (asked.feed && *asked.feed != *feed)) return true;
  const auto latest = scanner::latest_scan(*database);
  return !latest || *latest != asked.since;
}

base::Result<HttpResponse> read_changes_page(scanner::UsageDatabase& database, const ChangesRequest& asked,
                                             const std::function<bool()>& should_stop) {
  const auto feed = scanner::feed_id(database);
  if (!feed) return feed.error();
  const auto latest = scanner::latest_scan(database);
  if (!latest) return latest.error();
  if (*latest == 0) return no_scan_error();
  if (asked.feed && *asked.feed != *feed) return reset_response(*feed, *latest);
  if (asked.files) {
    const auto keeps_files = scanner::keeps_files(database);
    if (!keeps_files) return keeps_files.error();
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
      database, range, [&](const scanner::FeedEntry& entry) { return page.add(entry); }, should_stop);
  if (!until) return until.error();
  const std::optional<std::uint64_t>& kept_until = *until;
  // A place beyond the last scan is from before the database was replaced by an older copy of itself.
  if (!kept_until || (range.until && *kept_until < *range.until)) return reset_response(*feed, *latest);
  FeedPlace place{.feed = *feed, .since = asked.since, .until = *kept_until, .after = {}};
  if (asked.files) place.file.emplace();
  return json_response(page.to_json(std::move(place)));
}

}  // namespace spoor::daemon
