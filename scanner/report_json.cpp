#include "scanner/report_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/base64.h"
#include "base/clock.h"
#include "base/printable.h"
#include "scanner/store/directory_row.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

struct NamedChange {
  UsageGrowth::Change change;
  std::string_view name;
};

constexpr std::array named_changes = {
    NamedChange{UsageGrowth::Change::grown, "grown"},
    NamedChange{UsageGrowth::Change::created, "new"},
    NamedChange{UsageGrowth::Change::deleted, "deleted"},
    NamedChange{UsageGrowth::Change::recreated, "recreated"},
    NamedChange{UsageGrowth::Change::renamed, "renamed"},
};

ordered_json time_or_null(const std::optional<base::WallTime>& time) {
  return time ? ordered_json(base::iso_time(*time)) : ordered_json(nullptr);
}

ordered_json growth_json(const std::optional<UsageGrowth>& growth, bool now_is_complete) {
  if (!growth) return nullptr;
  ordered_json json{{"files", growth->files},
                    {"dirs", growth->dirs},
                    {"bytes", growth->bytes},
                    {"allocated", growth->allocated},
                    {"since", base::iso_time(growth->since)},
                    {"change", name_of(growth->change)},
                    {"complete", growth->complete && now_is_complete}};
  if (!growth->from.empty()) json["from"] = growth->from;
  return json;
}

// Appends the figures to `json`. Marks saturated sums, so that a reader does not take sum_max for a real sum.
ordered_json with_figures(ordered_json json, const Usage& usage, const UsageFigures& figures) {
  json["files"] = figures.files;
  json["dirs"] = figures.dirs;
  json["bytes"] = figures.bytes;
  json["allocated"] = figures.allocated;
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
  json["files"] = totals.files;
  json["bytes"] = totals.bytes;
  json["allocated"] = totals.allocated;
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
                    {"duration_s", std::chrono::duration<double>(scan.took()).count()},
                    {"dirs_walked", scan.figures.dirs_walked},
                    {"dirs_skipped", scan.figures.dirs_skipped},
                    {"dirs_changed", scan.figures.dirs_changed},
                    {"dirs_new", scan.figures.dirs_new},
                    {"dirs_deleted", scan.figures.dirs_deleted},
                    {"false_positives", nullptr},
                    {"false_positive_rate", nullptr},
                    {"files", scan.files},
                    {"bytes", scan.bytes},
                    {"errors", scan.errors},
                    {"audited", scan.figures.audited},
                    {"missed_changes", scan.figures.missed}};
  if (const auto rate = scan.false_positive_rate()) {
    json["false_positives"] = *scan.false_positives();
    json["false_positive_rate"] = *rate;
  }
  return json;
}

// The library converts a negative number and a fraction to any other.
std::uint64_t read_count(const ordered_json& json, const char* name) {
  const ordered_json& count = json.at(name);
  const bool is_negative = !count.is_number_unsigned() && count.is_number() && count.get<double>() < 0;
  if (!count.is_number_integer() || is_negative)
    throw std::invalid_argument(fmt::format("'{}' is not a number from 0 to 2^64 - 1", name));
  return count.get<std::uint64_t>();
}

base::WallTime read_time(const ordered_json& json) {
  const auto time = base::parse_iso_time(json.get<std::string>());
  // A later time could overflow when the duration of a scan is added.
  if (!time || *time > base::WallTime::max() - std::chrono::years(2))
    throw std::invalid_argument("a time is not in ISO 8601");
  return *time;
}

std::int64_t read_difference(const ordered_json& json, const char* name) {
  const ordered_json& difference = json.at(name);
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  const bool is_too_large = difference.is_number_unsigned() && difference.get<std::uint64_t>() > most;
  if (!difference.is_number_integer() || is_too_large)
    throw std::invalid_argument(fmt::format("'{}' is not a number from -2^63 to 2^63 - 1", name));
  return difference.get<std::int64_t>();
}

UsageGrowth read_growth(const ordered_json& json) {
  UsageGrowth growth;
  growth.files = read_difference(json, "files");
  growth.dirs = read_difference(json, "dirs");
  growth.bytes = read_difference(json, "bytes");
  growth.allocated = read_difference(json, "allocated");
  growth.since = read_time(json.at("since"));
  const auto named =
      std::ranges::find(named_changes, json.at("change").get<std::string>(), &NamedChange::name);
  if (named == named_changes.end()) throw std::invalid_argument("a change has an unknown name");
  growth.change = named->change;
  growth.from = json.value("from", "");
  json.at("complete").get_to(growth.complete);
  return growth;
}

void read_figures(const ordered_json& json, UsageFigures& figures) {
  figures.files = read_count(json, "files");
  figures.dirs = read_count(json, "dirs");
  figures.bytes = read_count(json, "bytes");
  figures.allocated = read_count(json, "allocated");
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
  return {read_count(json, "files"), read_count(json, "bytes"), read_count(json, "allocated")};
}

std::uint32_t read_id(const ordered_json& json, const char* name) {
  const std::uint64_t id = read_count(json, name);
  if (id > std::numeric_limits<std::uint32_t>::max())
    throw std::invalid_argument(fmt::format("'{}' is not a number below 2^32", name));
  return static_cast<std::uint32_t>(id);
}

UsageOwners read_owners(const ordered_json& json) {
  UsageOwners owners;
  json.at("complete").get_to(owners.complete);
  const ordered_json& list = json.at("list");
  if (list.size() > usage_owners_max) throw std::length_error("too many owners");
  for (const ordered_json& each : list) {
    Owner owner = other_owners;
    if (!each.at("uid").is_null()) owner = {read_id(each, "uid"), read_id(each, "gid")};
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
  scan.figures.dirs_walked = read_count(json, "dirs_walked");
  scan.figures.dirs_skipped = read_count(json, "dirs_skipped");
  scan.figures.dirs_changed = read_count(json, "dirs_changed");
  scan.figures.dirs_new = read_count(json, "dirs_new");
  scan.figures.dirs_deleted = read_count(json, "dirs_deleted");
  scan.files = read_count(json, "files");
  scan.bytes = read_count(json, "bytes");
  scan.errors = read_count(json, "errors");
  scan.figures.audited = read_count(json, "audited");
  scan.figures.missed = read_count(json, "missed_changes");
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
  return std::ranges::find(named_changes, change, &NamedChange::change)->name;
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
  constexpr std::array<const char*, 5> events = {nullptr, "new", "deleted", "recreated", "renamed"};
  ordered_json points = ordered_json::array();
  for (const HistoryPoint& point : history.points) {
    const char* const event = events.at(static_cast<std::size_t>(point.event));
    ordered_json json{{"at", base::iso_time(wall_time(point.at))},
                      {"files", point.figures.files},
                      {"dirs", point.figures.dirs},
                      {"bytes", point.figures.bytes},
                      {"allocated", point.figures.allocated},
                      {"complete", point.complete},
                      {"event", event == nullptr ? ordered_json(nullptr) : ordered_json(event)}};
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
