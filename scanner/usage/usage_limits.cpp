#include "scanner/usage/usage_limits.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "scanner/database/sqlite.h"
#include "scanner/usage/directory_totals.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t day_s = 86'400;

ordered_json number_or_null(std::uint64_t limit) {
  return limit == 0 ? ordered_json(nullptr) : ordered_json(limit);
}

// `history`: null if it does not know the last scan.
void measure(LimitState& state, DirectoryTotals& totals, HistoryStore* history, std::int64_t since,
             std::int64_t at) {
  const DirectoryTotal total = totals.find(state.limit.path);
  state.bytes = total.figures.bytes;
  state.files = total.figures.files;
  state.complete = !total.is_there || total.complete;
  state.growth_per_day.reset();
  if (history == nullptr || !state.complete) return;
  const auto row = history->find_path(state.limit.path);
  if (!row) return;
  const auto now = total.is_there ? std::optional(total.figures) : std::nullopt;
  const auto growth = growth_since(HistoryStore::points_of(*row), at - day_s, since, now);
  if (growth && growth->complete) state.growth_per_day = growth->bytes;
}

std::uint64_t limit_of(const ordered_json& number) {
  return number.is_null() ? 0 : number.get<std::uint64_t>();
}

LimitState read_state(const ordered_json& json) {
  LimitState state;
  json.at("path").get_to(state.limit.path);
  state.limit.bytes = limit_of(json.at("bytes"));
  state.limit.files = limit_of(json.at("files"));
  state.limit.growth_per_day = limit_of(json.at("growth_per_day"));
  state.limit.of_cluster = json.value("scope", "node") == "cluster";
  const ordered_json& current = json.at("current");
  current.at("bytes").get_to(state.bytes);
  current.at("files").get_to(state.files);
  current.at("complete").get_to(state.complete);
  if (const auto& growth = current.at("growth_per_day"); !growth.is_null())
    state.growth_per_day = growth.get<std::int64_t>();
  json.at("scan").get_to(state.scan);
  state.notified = json.value("notified", std::vector<std::string>());
  return state;
}

std::string encoded(const std::vector<LimitState>& states) {
  return limits_json(states).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

base::Result<std::vector<LimitState>> decoded(const std::string& text) {
  try {
    return limits_from_json(ordered_json::parse(text));
  } catch (const ordered_json::exception& error) {
    return base::Error(std::make_error_code(std::errc::bad_message),
                       fmt::format("the limits in the scan database cannot be read: {}", error.what()));
  }
}

}  // namespace

bool LimitState::exceeds_growth() const {
  return limit.growth_per_day != 0 && growth_per_day && *growth_per_day > 0 &&
         static_cast<std::uint64_t>(*growth_per_day) > limit.growth_per_day;
}

std::vector<std::string> LimitState::exceeded() const {
  std::vector<std::string> names;
  if (exceeds_bytes()) names.emplace_back("bytes");
  if (exceeds_files()) names.emplace_back("files");
  if (exceeds_growth()) names.emplace_back("growth_per_day");
  return names;
}

std::vector<std::string> LimitState::not_notified() const {
  std::vector<std::string> names = exceeded();
  std::erase_if(names,
                [&](const std::string& name) { return std::ranges::find(notified, name) != notified.end(); });
  return names;
}

void LimitState::forget_notified() {
  const auto is_kept = [&](const std::string& name) {
    if (name == "growth_per_day") return growth_per_day && !exceeds_growth();
    return complete && !(name == "bytes" ? exceeds_bytes() : exceeds_files());
  };
  std::erase_if(notified, is_kept);
}

std::vector<LimitState> check_limits(ScanTransaction& transaction, const std::vector<UsageLimit>& limits,
                                     base::WallTime started_at) {
  SqliteDatabase& database = transaction.handle();
  std::vector<LimitState> states;
  if (limits.empty()) {
    erase_setting(database, usage_limits_key);
    return states;
  }
  // Another version may have stored others.
  const auto found = decoded(find_setting(database, usage_limits_key).value_or("[]"));
  const std::vector<LimitState> before = found ? *found : std::vector<LimitState>();
  DirectoryTotals totals(database);
  // The clock may be behind it.
  const bool is_recorded = find_setting(database, history_scan_key) == std::to_string(transaction.scan_id());
  HistoryStore* const history = is_recorded ? transaction.history() : nullptr;
  const std::int64_t since = history_since(database);
  for (const UsageLimit& limit : limits) {
    const auto known = std::ranges::find_if(before, [&](const LimitState& state) {
      return state.limit.path == limit.path && state.limit.of_cluster == limit.of_cluster;
    });
    LimitState state;
    state.complete = false;
    if (known != before.end()) state = *known;
    state.limit = limit;
    if (!limit.of_cluster) {
      measure(state, totals, history, since, history_time(started_at));
      state.scan = transaction.scan_id();
    }
    state.forget_notified();
    states.push_back(std::move(state));
  }
  put_setting(database, usage_limits_key, encoded(states));
  return states;
}

base::Result<std::vector<LimitState>> read_limits(UsageDatabase& database) {
  const auto text = database.setting(usage_limits_key);
  if (!text) return text.error();
  return decoded(text->value_or("[]"));
}

base::Result<> store_limits(UsageDatabase& database, const std::vector<LimitState>& states) {
  return database.replace_setting(usage_limits_key, encoded(states));
}

ordered_json limits_json(const std::vector<LimitState>& states) {
  ordered_json list = ordered_json::array();
  for (const LimitState& state : states) {
    const auto growth = state.growth_per_day;
    list.push_back({{"path", state.limit.path},
                    {"scope", state.limit.of_cluster ? "cluster" : "node"},
                    {"bytes", number_or_null(state.limit.bytes)},
                    {"files", number_or_null(state.limit.files)},
                    {"growth_per_day", number_or_null(state.limit.growth_per_day)},
                    {"exceeded", state.exceeded()},
                    {"current",
                     {{"bytes", state.bytes},
                      {"files", state.files},
                      {"complete", state.complete},
                      {"growth_per_day", growth ? ordered_json(*growth) : ordered_json(nullptr)}}},
                    {"scan", state.scan},
                    {"notified", state.notified}});
  }
  return list;
}

std::vector<LimitState> limits_from_json(const ordered_json& json) {
  std::vector<LimitState> states;
  for (const ordered_json& state : json) states.push_back(read_state(state));
  return states;
}

}  // namespace spoor::scanner
