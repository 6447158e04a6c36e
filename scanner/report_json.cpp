#include "scanner/report_json.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/iso_time.h"
#include "scanner/directory_row.h"

namespace spoor::scanner {
namespace {

using nlohmann::ordered_json;

// A reader that does not know of the end of all sums must not take it for one.
template <class Figures>
ordered_json with_saturated(ordered_json json, const Figures& figures) {
  const bool is_saturated =
      figures.files == sum_max || figures.bytes == sum_max || figures.allocated == sum_max;
  if (is_saturated) json["saturated"] = true;
  return json;
}

ordered_json rest_json(const Usage& usage, const UsageRest& rest) {
  return with_saturated({{"count", rest.count},
                         {"files", rest.files},
                         {"dirs", rest.dirs},
                         {"bytes", rest.bytes},
                         {"allocated", rest.allocated},
                         {"complete", rest.complete && usage.saw_everything}},
                        rest);
}

ordered_json entry_json(const Usage& usage, const UsageEntry& entry) {
  return with_saturated({{"path", entry.path},
                         {"files", entry.files},
                         {"dirs", entry.dirs},
                         {"bytes", entry.bytes},
                         {"allocated", entry.allocated},
                         {"complete", usage.is_complete(entry)}},
                        entry);
}

void add_children(ordered_json& json, const Usage& usage, const UsageEntry& entry) {
  if (!entry.is_open) return;
  ordered_json children = ordered_json::array();
  for (const UsageEntry& child : entry.children) {
    children.push_back(entry_json(usage, child));
    add_children(children.back(), usage, child);
  }
  json["children"] = std::move(children);
  if (entry.rest.count > 0) json["rest"] = rest_json(usage, entry.rest);
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

}  // namespace

ordered_json usage_json(const Usage& usage) {
  ordered_json json = entry_json(usage, usage.total);
  json["as_of"] = usage.as_of ? ordered_json(base::iso_time(*usage.as_of)) : ordered_json(nullptr);
  json["truncated"] = usage.truncated;
  json["children"] = ordered_json::array();  // even where none were asked for
  add_children(json, usage, usage.total);
  return json;
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

}  // namespace spoor::scanner
