#include "peer/http/watch_report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/printable.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr std::string_view cookie_prefix = "cookie-";
constexpr std::size_t cookie_digits = 32;
constexpr std::size_t drives_max = 1024;

base::Error bad(const std::string& what) { return {std::make_error_code(std::errc::bad_message), what}; }

ordered_json text_or_null(const std::string& text) {
  return text.empty() ? ordered_json(nullptr) : ordered_json(text);
}

std::string text_at(const json& object, const char* name) {
  const json& value = object.at(name);
  return value.is_null() ? std::string() : value.get<std::string>();
}

ordered_json gap_json(const DriveGap& gap) {
  if (gap.id.empty()) return nullptr;
  return {{"id", gap.id}, {"reason", base::printable(gap.reason)}, {"at", base::iso_time(gap.at)}};
}

DriveGap read_gap(const json& value) {
  if (value.is_null()) return {};
  return {value.at("id").get<std::string>(), value.at("reason").get<std::string>(),
          base::parse_iso_time(value.at("at").get<std::string>()).value_or(base::WallTime())};
}

// Throws json::exception, as all of these, also for a number with a fraction.
std::uint64_t count(const json& object, const char* name) {
  return object.at(name).get_ref<const json::number_unsigned_t&>();
}

// What `read` makes of the JSON.
template <class Read>
auto parse(std::string_view text, Read read) -> base::Result<decltype(read(json()))> {
  try {
    return read(json::parse(text));
  } catch (const json::exception& error) {
    return bad(base::printable(error.what()));
  }
}

std::optional<DriveSync> find_drive(const json& drives, const std::string& drive) {
  const auto found = std::ranges::find_if(drives, [&](const json& each) { return each.at("path") == drive; });
  if (found == drives.end()) return std::nullopt;
  return DriveSync{drive, text_at(*found, "error"), read_gap(found->at("gap"))};
}

// A confirmation names the gap: without one there is nothing to compare.
DriveSync result_of(const json& response, const std::string& drive) {
  auto found = find_drive(response.at("drives"), drive);
  if (!found) return {drive, "spoord does not know this drive: restart it", {}};
  if (found->error.empty() && found->gap.id.empty()) found->error = "the response of spoord names no gap";
  return *std::move(found);
}

}  // namespace

ordered_json watched_drive_json(const WatchedDrive& drive) {
  const WatchFigures& figures = drive.figures;
  return {{"path", drive.drive},
          {"watched", drive.is_watched},
          {"error", text_or_null(base::printable(drive.error))},
          {"gap", gap_json(drive.gap)},
          {"cookie", text_or_null(drive.cookie)},
          {"events", figures.events},
          {"marks", figures.marks},
          {"coalesced", figures.coalesced},
          {"gaps", figures.gaps},
          {"queue_bytes_max", figures.queue_bytes_max},
          {"pending_marks", figures.pending_marks},
          {"lag_s", figures.lag_seconds}};
}

base::Result<WatchedDrive> parse_watched_drive(std::string_view text) {
  return parse(text, [](const json& value) {
    return WatchedDrive{.drive = value.at("path").get<std::string>(),
                        .is_watched = value.at("watched").get<bool>(),
                        .error = text_at(value, "error"),
                        .gap = read_gap(value.at("gap")),
                        .cookie = text_at(value, "cookie"),
                        .figures = {.events = count(value, "events"),
                                    .marks = count(value, "marks"),
                                    .coalesced = count(value, "coalesced"),
                                    .gaps = count(value, "gaps"),
                                    .queue_bytes_max = count(value, "queue_bytes_max"),
                                    .pending_marks = count(value, "pending_marks"),
                                    .lag_seconds = value.at("lag_s").get<double>()}};
  });
}

std::string new_cookie() { return std::string(cookie_prefix) + tracker::InstanceId::random().to_string(); }

bool is_cookie(std::string_view name) {
  return name.size() == cookie_prefix.size() + cookie_digits && name.starts_with(cookie_prefix) &&
         name.find_first_not_of("0123456789abcdef", cookie_prefix.size()) == std::string_view::npos;
}

base::Result<SyncRequest> parse_sync_request(std::string_view text) {
  auto request = parse(text, [](const json& value) {
    return SyncRequest{
        value.at("cluster").get<std::string>(), value.at("node").get<std::string>(),
        value.at("drives").get<std::vector<std::string>>(),
        std::chrono::milliseconds(std::min(count(value, "timeout_ms"), std::uint64_t{3'600'000}))};
  });
  if (request && request->drives.size() > drives_max) return bad("too many drives");
  if (request && std::set(request->drives.begin(), request->drives.end()).size() != request->drives.size())
    return bad("a drive is given twice");
  return request;
}

ordered_json sync_json(const std::vector<DriveSync>& drives) {
  ordered_json list = ordered_json::array();
  for (const DriveSync& drive : drives) {
    list.push_back({{"path", drive.drive},
                    {"error", text_or_null(base::printable(drive.error))},
                    {"gap", gap_json(drive.gap)}});
  }
  return {{"drives", std::move(list)}};
}

std::vector<DriveSync> synchronise(Transport& transport, const base::Endpoint& daemon,
                                   const SyncRequest& request) {
  const json body{{"cluster", request.cluster},
                  {"node", request.node},
                  {"drives", request.drives},
                  {"timeout_ms", request.timeout.count()}};
  const auto response =
      exchange(transport, {daemon, "POST", "/v1/watch/sync", "application/json", body.dump()});
  const auto parsed = parse(response && response->is_success() ? response->body : "", [&](const json& value) {
    std::vector<DriveSync> results;
    results.reserve(request.drives.size());
    for (const std::string& drive : request.drives) results.push_back(result_of(value, drive));
    return results;
  });
  if (parsed) return *parsed;
  const std::string failure = !response ? response.error().message
                              : response->is_success()
                                  ? "the response of spoord is malformed: " + parsed.error().message
                                  : problem_detail(*response);
  std::vector<DriveSync> results;
  results.reserve(request.drives.size());
  for (const std::string& drive : request.drives) results.push_back({drive, failure, {}});
  return results;
}

}  // namespace spoor::peer
