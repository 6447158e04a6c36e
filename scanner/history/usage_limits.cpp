#include "scanner/history/usage_limits.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "scanner/history/directory_sums.h"
#include "scanner/store/history_query.h"
#include "scanner/store/sqlite.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t day_s = 86'400;

ordered_json number_or_null(std::uint64_t limit) {
  return limit == 0 ? ordered_json(nullptr) : ordered_json(limit);
}

LimitState state_of(const UsageLimit& limit, DirectorySums& sums, std::optional<HistoryReader>& history,
                    std::int64_t at) {
  LimitState state;
  state.limit = limit;
  const auto sum = sums.find(limit.path);
  if (sum) {
    state.bytes = sum->figures.bytes;
    state.files = sum->figures.files;
    state.complete = sum->complete;
  }
  if (!history || !state.complete) return state;
  const auto row = history->find(limit.path);
  if (!row) return state;
  const auto now = sum ? std::optional(sum->figures) : std::nullopt;
  const auto growth = growth_since(HistoryStore::points_of(*row), at - day_s, history->since(), now);
  if (growth && growth->complete) state.growth_per_day = growth->bytes;
  return state;
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
  const ordered_json& current = json.at("current");
  current.at("bytes").get_to(state.bytes);
  current.at("files").get_to(state.files);
  current.at("complete").get_to(state.complete);
  if (const auto& growth = current.at("growth_per_day"); !growth.is_null())
    state.growth_per_day = growth.get<std::int64_t>();
  json.at("scan").get_to(state.scan);
  return state;
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

base::Result<std::vector<LimitState>> check_limits(ScanTransaction& transaction,
                                                   const std::vector<UsageLimit>& limits,
                                                   base::WallTime started_at) {
  std::vector<LimitState> states;
  if (limits.empty()) {
    if (auto removed = transaction.remove_setting(usage_limits_key); !removed) return removed.error();
    return states;
  }
  const auto last = transaction.setting(history_scan_key);
  if (!last) return last.error();
  auto checked = guarded("check the limits", transaction.handle(), [&] {
    DirectorySums sums(transaction.handle());
    std::optional<HistoryReader> history;
    // The clock may be behind it.
    const bool is_recorded =
        transaction.history() != nullptr && *last == std::to_string(transaction.scan_id());
    if (is_recorded) history.emplace(transaction.handle());
    for (const UsageLimit& limit : limits) {
      states.push_back(state_of(limit, sums, history, history_time(started_at)));
      states.back().scan = transaction.scan_id();
    }
  });
  if (!checked) return checked.error();
  const std::string text = limits_json(states).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
  if (auto put = transaction.set_setting(usage_limits_key, text); !put) return put.error();
  return states;
}

base::Result<std::vector<LimitState>> read_limits(UsageDatabase& database) {
  const auto text = guarded("read a setting", database.handle(), [&] {
    SqliteStatement query(database.handle(), "SELECT value FROM settings WHERE key = ?",
                          SqliteText{usage_limits_key});
    return query.step() ? std::string(query.blob(0)) : std::string("[]");
  });
  if (!text) return text.error();
  try {
    std::vector<LimitState> states;
    for (const ordered_json& state : ordered_json::parse(*text)) states.push_back(read_state(state));
    return states;
  } catch (const ordered_json::exception& error) {
    return base::Error(std::make_error_code(std::errc::bad_message),
                       fmt::format("the limits in the scan database cannot be read: {}", error.what()));
  }
}

ordered_json limits_json(const std::vector<LimitState>& states) {
  ordered_json list = ordered_json::array();
  for (const LimitState& state : states) {
    const auto growth = state.growth_per_day;
    list.push_back({{"path", state.limit.path},
                    {"bytes", number_or_null(state.limit.bytes)},
                    {"files", number_or_null(state.limit.files)},
                    {"growth_per_day", number_or_null(state.limit.growth_per_day)},
                    {"exceeded", state.exceeded()},
                    {"current",
                     {{"bytes", state.bytes},
                      {"files", state.files},
                      {"complete", state.complete},
                      {"growth_per_day", growth ? ordered_json(*growth) : ordered_json(nullptr)}}},
                    {"scan", state.scan}});
  }
  return list;
}

}  // namespace spoor::scanner
