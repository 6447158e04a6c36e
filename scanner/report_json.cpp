#include "scanner/report_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/base64.h"
#include "base/clock.h"
#include "base/printable.h"
#include "scanner/store/directory_row.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

// By UsageGrowth::Change, and by HistoryEvent, where the first one is no event.
constexpr std::array<std::string_view, 5> change_names = {"grown", "new", "deleted", "recreated", "renamed"};

template <class Figures, class Number = std::uint64_t>
struct Count {
  const char* name;
  Number Figures::* member;
};

template <class Figures>
constexpr std::array usage_counts = {Count{"files", &Figures::files}, Count{"dirs", &Figures::dirs},
                                     Count{"bytes", &Figures::bytes},
                                     Count{"allocated", &Figures::allocated}};
constexpr std::array owned_counts = {Count{"files", &OwnedTotals::files}, Count{"bytes", &OwnedTotals::bytes},
                                     Count{"allocated", &OwnedTotals::allocated}};
constexpr std::array walk_counts = {
    Count{"dirs_walked", &WalkFigures::dirs_walked}, Count{"dirs_skipped", &WalkFigures::dirs_skipped},
    Count{"dirs_changed", &WalkFigures::dirs_changed}, Count{"dirs_new", &WalkFigures::dirs_new},
    Count{"dirs_deleted", &WalkFigures::dirs_deleted}};
constexpr std::array scan_counts = {Count{"files", &ScanRecord::files}, Count{"bytes", &ScanRecord::bytes},
                                    Count{"errors", &ScanRecord::errors}};
constexpr std::array audit_counts = {Count{"audited", &WalkFigures::audited},
                                     Count{"missed_changes", &WalkFigures::missed}};

void put_counts(ordered_json& json, const auto& counts, const auto& figures) {
  for (const auto& each : counts) json[each.name] = figures.*each.member;
}

template <class Value>
ordered_json or_null(const std::optional<Value>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

ordered_json time_or_null(const std::optional<base::WallTime>& time) {
  return time ? ordered_json(base::iso_time(*time)) : ordered_json(nullptr);
}

ordered_json growth_json(const std::optional<UsageGrowth>& growth, bool now_is_complete) {
  if (!growth) return nullptr;
  ordered_json json;
  put_counts(json, usage_counts<UsageGrowth>, *growth);
  json["since"] = base::iso_time(growth->since);
  json["change"] = name_of(growth->change);
  json["complete"] = growth->complete && now_is_complete;
  if (!growth->from.empty()) json["from"] = growth->from;
  return json;
}

// Appends the figures to `json`. Marks saturated sums, so that a reader does not take sum_max for a real sum.
ordered_json with_figures(ordered_json json, const Usage& usage, const UsageFigures& figures) {
  put_counts(json, usage_counts<UsageFigures>, figures);
  json["complete"] = usage.is_complete(figures);
  if (figures.is_saturated()) json["saturated"] = true;
  if (usage.since) json["growth"] = growth_json(figures.growth, usage.is_complete(figures));
  if (!usage.has_copy_rules) return json;
  json["logical_bytes"] = figures.logical_bytes();
  ordered_json copied = ordered_json::array();
  for (const auto& [factor, bytes] : figures.copied) copied.push_back({{"factor", factor}, {"bytes", bytes}});
  json["copied"] = std::move(copied);
  return json;
}

// A path that is not UTF-8 is not exact in JSON: two of them may look the same.
ordered_json entry_json(const Usage& usage, const UsageEntry& entry) {
  ordered_json json{{"path", entry.path}};
  if (entry.is_unread) json["unread"] = true;
  if (!base::is_utf8(entry.path)) json["path_base64"] = base::to_base64(entry.path);
  return with_figures(std::move(json), usage, entry);
}

void add_children(ordered_json& json, const Usage& usage, const UsageEntry& entry) {
  if (!entry.is_open) return;
  ordered_json children = ordered_json::array();
  for (const UsageEntry& child : entry.children) {
    children.push_back(entry_json(usage, child));
    add_children(children.back(), usage, child);
  }
  json["children"] = std::move(children);
  if (entry.rest.count > 0) json["rest"] = with_figures({{"count", entry.rest.count}}, usage, entry.rest);
}

ordered_json owned_json(ordered_json json, const OwnedTotals& totals) {
  put_counts(json, owned_counts, totals);
  return json;
}

// Those that are one because a directory has too many have no ids.
ordered_json owner_json(const OwnerEntry& entry) {
  if (entry.owner == other_owners) return owned_json({{"uid", nullptr}, {"gid", nullptr}}, entry.totals);
  return owned_json({{"uid", entry.owner.uid}, {"gid", entry.owner.gid}}, entry.totals);
}

ordered_json owners_json(const Usage& usage) {
  if (!usage.owners) return nullptr;
  ordered_json list = ordered_json::array();
  for (const OwnerEntry& entry : usage.owners->list) list.push_back(owner_json(entry));
  ordered_json json{{"complete", usage.is_complete(*usage.owners)}, {"list", std::move(list)}};
  if (usage.owners->rest_count > 0)
    json["rest"] = owned_json({{"count", usage.owners->rest_count}}, usage.owners->rest);
  return json;
}

ordered_json scan_json(const ScanRecord& scan) {
  ordered_json json{{"scan", scan.id},
                    {"cycle", scan.cycle.value},
                    {"mode", scan.walked_everything ? "full" : "incremental"},
                    {"reason", scan.reason},
                    {"partial", scan.partial},
                    {"started_at", base::iso_time(scan.started_at)},
                    {"finished_at", base::iso_time(scan.finished_at)},
                    {"duration_s", std::chrono::duration<double>(scan.took()).count()}};
  put_counts(json, walk_counts, scan.figures);
  json["false_positives"] = or_null(scan.false_positives());
  json["false_positive_rate"] = or_null(scan.false_positive_rate());
  put_counts(json, scan_counts, scan);
  put_counts(json, audit_counts, scan.figures);
  return json;
}

// The library converts a negative number, one that is too large, and a fraction to any other.
template <class Number = std::uint64_t>
Number read_count(const ordered_json& json, const char* name) {
  const ordered_json& count = json.at(name);
  const bool fits = count.is_number_unsigned()
                        ? std::in_range<Number>(count.get<std::uint64_t>())
                        : count.is_number_integer() && std::in_range<Number>(count.get<std::int64_t>());
  if (!fits) {
    throw std::invalid_argument(fmt::format("'{}' is not a number from {} to {}", name,
                                            std::numeric_limits<Number>::min(),
                                            std::numeric_limits<Number>::max()));
  }
  return count.get<Number>();
}

void read_counts(const ordered_json& json, const auto& counts, auto& figures) {
  for (const auto& each : counts) {
    auto& number = figures.*each.member;
    number = read_count<std::remove_reference_t<decltype(number)>>(json, each.name);
  }
}

base::WallTime read_time(const ordered_json& json) {
  const auto time = base::parse_iso_time(json.get<std::string>());
  // A later time could overflow when the duration of a scan is added.
  if (!time || *time > base::WallTime::max() - std::chrono::years(2))
    throw std::invalid_argument("a time is not in ISO 8601");
  return *time;
}

UsageGrowth read_growth(const ordered_json& json) {
  UsageGrowth growth;
  read_counts(json, usage_counts<UsageGrowth>, growth);
  growth.since = read_time(json.at("since"));
  const auto name = std::ranges::find(change_names, json.at("change").get<std::string>());
  if (name == change_names.end()) throw std::invalid_argument("a change has an unknown name");
  growth.change = static_cast<UsageGrowth::Change>(name - change_names.begin());
  growth.from = json.value("from", "");
  json.at("complete").get_to(growth.complete);
  return growth;
}

void read_figures(const ordered_json& json, UsageFigures& figures) {
  read_counts(json, usage_counts<UsageFigures>, figures);
  json.at("complete").get_to(figures.complete);
  const auto growth = json.find("growth");
  if (growth != json.end() && !growth->is_null()) figures.growth = read_growth(*growth);
  const auto copied = json.find("copied");
  if (copied == json.end()) return;
  constexpr std::size_t factors_max = 100;
  if (copied->size() > factors_max) throw std::length_error("too many factors of copies");
  for (const ordered_json& of : *copied) {
    const double factor = of.at("factor").get<double>();
    if (!(factor >= 1)) throw std::invalid_argument("a factor of copies is below 1");
    figures.copied[factor] = read_count(of, "bytes");
  }
}

std::string read_path(const ordered_json& json) {
  const auto exact = json.find("path_base64");
  if (exact == json.end()) return json.at("path").get<std::string>();
  auto path = base::from_base64(exact->get<std::string>());
  if (!path) throw std::invalid_argument("path_base64 is not in base64");
  return *std::move(path);
}

UsageEntry read_entry(const ordered_json& json, std::uint64_t depth) {
  UsageEntry entry;
  entry.path = read_path(json);
  entry.depth = depth;
  read_figures(json, entry);
  const auto children = json.find("children");
  entry.is_open = children != json.end();
  entry.is_unread = json.value("unread", false);
  if (!entry.is_open) return entry;
  if (depth == usage_depth_max && !children->empty())
    throw std::length_error("directories are nested too deep");
  for (const ordered_json& child : *children) entry.children.push_back(read_entry(child, depth + 1));
  if (const auto rest = json.find("rest"); rest != json.end()) {
    entry.rest.count = read_count(*rest, "count");
    read_figures(*rest, entry.rest);
  }
  return entry;
}

OwnedTotals read_owned(const ordered_json& json) {
  OwnedTotals totals;
  read_counts(json, owned_counts, totals);
  return totals;
}

UsageOwners read_owners(const ordered_json& json) {
  UsageOwners owners;
  json.at("complete").get_to(owners.complete);
  const ordered_json& list = json.at("list");
  if (list.size() > usage_owners_max) throw std::length_error("too many owners");
  for (const ordered_json& each : list) {
    Owner owner = other_owners;
    if (!each.at("uid").is_null())
      owner = {read_count<std::uint32_t>(each, "uid"), read_count<std::uint32_t>(each, "gid")};
    owners.list.push_back({owner, read_owned(each)});
  }
  if (const auto rest = json.find("rest"); rest != json.end()) {
    owners.rest_count = read_count(*rest, "count");
    owners.rest = read_owned(*rest);
  }
  return owners;
}

ScanRecord read_scan(const ordered_json& json) {
  ScanRecord scan;
  scan.id = read_count(json, "scan");
  scan.cycle.value = read_count(json, "cycle");
  scan.walked_everything = json.at("mode").get<std::string>() == "full";
  json.at("reason").get_to(scan.reason);
  json.at("partial").get_to(scan.partial);
  scan.started_at = read_time(json.at("started_at"));
  constexpr double year_s = 365.0 * 86'400;
  const std::chrono::duration<double> took(std::clamp(json.at("duration_s").get<double>(), 0.0, year_s));
  scan.finished_at = scan.started_at + std::chrono::round<std::chrono::nanoseconds>(took);
  read_counts(json, walk_counts, scan.figures);
  read_counts(json, scan_counts, scan);
  read_counts(json, audit_counts, scan.figures);
  return scan;
}

// Runs `read` on JSON from outside, and converts its exceptions to errors.
template <class Read>
auto read_json(Read read) -> base::Result<decltype(read())> {
  try {
    return read();
  } catch (const std::exception& error) {
    return base::Error(std::make_error_code(std::errc::bad_message),
                       fmt::format("the JSON is not of the expected form: {}", error.what()));
  }
}

}  // namespace

std::string_view name_of(UsageGrowth::Change change) {
  return change_names.at(static_cast<std::size_t>(change));
}

ordered_json usage_entry_json(const Usage& usage, const UsageEntry& entry) {
  ordered_json json = entry_json(usage, entry);
  json["as_of"] = time_or_null(usage.as_of);
  return json;
}

ordered_json usage_json(const Usage& usage) {
  ordered_json json = usage_entry_json(usage, usage.total);
  json["truncated"] = usage.truncated;
  if (usage.is_absent) json["absent"] = true;
  if (usage.is_scanning) json["scanning"] = true;
  if (usage.since) {
    json["since"] = base::iso_time(*usage.since);
    json["history_since"] = time_or_null(usage.history_since);
    json["history_full"] = usage.history_is_full;
  }
  if (usage.with_owners) json["owners"] = owners_json(usage);
  json["children"] = ordered_json::array();  // even if none were requested
  add_children(json, usage, usage.total);
  return json;
}

ordered_json history_json(std::string_view path, const UsageHistory& history) {
  ordered_json points = ordered_json::array();
  for (const HistoryPoint& point : history.points) {
    ordered_json json{{"at", base::iso_time(wall_time(point.at))}};
    put_counts(json, usage_counts<HistoryFigures>, point.figures);
    json["complete"] = point.complete;
    json["event"] = nullptr;
    if (point.event != HistoryEvent::none)
      json["event"] = change_names.at(static_cast<std::size_t>(point.event));
    if (!point.from.empty()) json["from"] = point.from;
    points.push_back(std::move(json));
  }
  return {{"path", path},
          {"as_of", time_or_null(history.as_of)},
          {"history_since", time_or_null(history.recorded_since)},
          {"points", std::move(points)}};
}

ordered_json changes_json(const FeedEntry& entry) {
  ordered_json changes = ordered_json::array();
  const auto add = [&](const char* change) {
    changes.push_back({{"scan", entry.scan}, {"path", entry.path}, {"change", change}});
    if (entry.is_file) changes.back()["type"] = "file";
  };
  if (entry.is_deleted) add("deleted");
  if (entry.is_there) add(entry.is_new ? "new" : "changed");
  return changes;
}

ordered_json scans_json(const std::vector<ScanRecord>& scans) {
  ordered_json list = ordered_json::array();
  for (const ScanRecord& scan : scans) list.push_back(scan_json(scan));
  return {{"scans", std::move(list)}};
}

base::Result<Usage> usage_from_json(const ordered_json& json) {
  return read_json([&] {
    Usage usage;
    usage.total = read_entry(json, 0);
    if (const auto& as_of = json.at("as_of"); !as_of.is_null()) usage.as_of = read_time(as_of);
    usage.saw_everything = true;  // otherwise no entry has `complete`
    json.at("truncated").get_to(usage.truncated);
    usage.is_absent = json.value("absent", false);
    usage.is_scanning = json.value("scanning", false);
    usage.has_copy_rules = json.contains("logical_bytes");
    if (const auto since = json.find("since"); since != json.end()) usage.since = read_time(*since);
    if (const auto since = json.find("history_since"); since != json.end() && !since->is_null())
      usage.history_since = read_time(*since);
    usage.history_is_full = json.value("history_full", false);
    const auto owners = json.find("owners");
    usage.with_owners = owners != json.end();
    if (usage.with_owners && !owners->is_null()) usage.owners = read_owners(*owners);
    return usage;
  });
}

base::Result<std::vector<ScanRecord>> scans_from_json(const ordered_json& json) {
  return read_json([&] {
    std::vector<ScanRecord> scans;
    for (const ordered_json& scan : json.at("scans")) scans.push_back(read_scan(scan));
    return scans;
  });
}

}  // namespace spoor::scanner
