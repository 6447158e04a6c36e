#include "cli/scan/scan_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"
#include "cli/program/format.h"

namespace spoor::cli {
namespace {

using base::printable;
using nlohmann::ordered_json;

constexpr std::size_t reason_bytes_max = 4096;
constexpr std::size_t mounts_shown_max = 10;

ordered_json peers_json(const peer::Gathered& gathered) {
  ordered_json peers = ordered_json::array();
  for (const auto& peer : gathered.peers) {
    peers.push_back({{"name", peer.name},
                     {"url", peer.url},
                     {"ok", peer.ok},
                     {"error", peer.error.empty() ? ordered_json(nullptr) : ordered_json(peer.error)}});
  }
  return peers;
}

ordered_json errors_json(const std::vector<scanner::ScanError>& errors, const char* place, const char* why) {
  ordered_json list = ordered_json::array();
  for (const auto& error : errors) list.push_back({{place, error.path}, {why, error.message}});
  return list;
}

// Whether the rate of false positives of a node is above that of any cycle that had the memory it requested.
bool is_saturated(const tracker::MarkSetFigures& filter, const tracker::LevelSchedule& levels) {
  return filter.fp_rate_of_group > levels.fp_rate_max();
}

// Those of one filter that all would have been merged into: nodes mark the same paths.
std::uint64_t items_of(const peer::Gathered& gathered) {
  return static_cast<std::uint64_t>(std::llround(gathered.items));
}

ordered_json filter_json(const ScanOutcome& outcome) {
  const auto filter = tracker::MarkSetFigures::of(outcome.gathered.marks);
  return {{"items", items_of(outcome.gathered)},
          {"bits", filter.bits},
          {"levels", outcome.gathered.marks.shape_count()},
          {"density", filter.density},
          {"fp_rate", filter.fp_rate},
          {"saturated", is_saturated(filter, outcome.levels)},
          {"start_level", outcome.start_level}};
}

ordered_json resumed_json(const scanner::ScanReport* report) {
  if (report == nullptr) return nullptr;
  return {{"scan", report->record.id},
          {"dirs_walked", report->record.figures.dirs_walked},
          {"dirs_replayed", report->dirs_replayed}};
}

ordered_json history_json(const scanner::HistoryReport& history) {
  if (!history.is_kept) return nullptr;
  return {{"paths", history.paths},
          {"points", history.points},
          {"refused", history.refused},
          {"clock_is_behind", history.clock_is_behind}};
}

std::string peers_text(const peer::Gathered& gathered) {
  const auto answered = std::ranges::count_if(gathered.peers, [](const auto& peer) { return peer.ok; });
  return fmt::format("{} of {} responded", answered, counted(gathered.peers.size(), "node"));
}

std::string unread_text(const peer::Gathered& gathered) {
  std::string failures;
  for (const auto& peer : gathered.peers) {
    if (peer.ok) continue;
    failures += fmt::format("  left for next time: {}: {}\n", printable(peer.name),
                            printable(peer.error, reason_bytes_max));
  }
  for (const std::string& source : gathered.unknown_sources) {
    failures +=
        fmt::format("  left for next time: the members listed by {}\n", printable(source, reason_bytes_max));
  }
  return failures;
}

std::string filter_text(const ScanOutcome& outcome) {
  const tracker::MarkSet& marks = outcome.gathered.marks;
  const auto filter = tracker::MarkSetFigures::of(marks);
  const std::size_t levels = marks.shape_count();
  std::string text = fmt::format(
      "filter     about {} in {}, density {}, false positives {}; {}; cycle {}\n",
      counted(items_of(outcome.gathered), "item"), counted(levels, "level"), percent(filter.density),
      percent(filter.fp_rate), counted(marks.tree_marks().size(), "tree mark"), outcome.gathered.cycle.value);
  if (outcome.start_level != 0) {
    text += fmt::format("           the next cycle is asked to open at level {}\n", outcome.start_level);
  }
  return text;
}

std::string saturated_text(const ScanOutcome& outcome) {
  if (!is_saturated(tracker::MarkSetFigures::of(outcome.gathered.marks), outcome.levels)) return {};
  return "saturated  directories are walked in which nothing changed: raise tracker.memory_limit on the "
         "nodes, "
         "or scan more often\n";
}

std::string audit_text(const scanner::ScanReport& report) {
  const auto& figures = report.record.figures;
  std::string text;
  if (figures.audited > 0 || figures.missed > 0) {
    text += fmt::format("audit      {} read without a mark: {} changed\n",
                        figures.audited == 1 ? "1 directory" : with_commas(figures.audited) + " directories",
                        with_commas(figures.missed));
  }
  if (report.audit.oldest_total)
    text += fmt::format("oldest     total of {}\n", base::iso_time(*report.audit.oldest_total));
  return text;
}

std::string missed_text(const scanner::ScanReport& report) {
  const auto& figures = report.record.figures;
  std::string text;
  for (const std::string& path : report.audit.missed_paths) {
    text += fmt::format("  changed without a mark: {}\n", path_text(path));
  }
  if (figures.missed > report.audit.missed_paths.size()) {
    text += fmt::format("  and {} more\n", with_commas(figures.missed - report.audit.missed_paths.size()));
  }
  return text;
}

std::string mounts_text(const scanner::ScanReport& report) {
  const std::size_t shown = std::min(report.mounts.size(), mounts_shown_max);
  std::string text;
  for (std::size_t number = 0; number < shown; ++number) {
    text += fmt::format("  not entered: {}: another mount\n", printable(report.mounts[number]));
  }
  if (report.mount_count > shown) {
    text += fmt::format("  not entered: {} more\n", with_commas(report.mount_count - shown));
  }
  return text;
}

std::string report_text(const scanner::ScanReport& report, const peer::Gathered& gathered) {
  const auto& record = report.record;
  const auto& figures = record.figures;
  const std::uint64_t all = figures.dirs_walked + figures.dirs_skipped;
  const double share = all == 0 ? 0 : static_cast<double>(figures.dirs_walked) / static_cast<double>(all);
  std::string text = record.walked_everything ? fmt::format("scan {}     full: {}\n", record.id,
                                                            printable(record.reason, reason_bytes_max))
                                              : fmt::format("scan {}     incremental\n", record.id);
  text += fmt::format("walked     {} of {} directories ({}): {} changed, {} new, {} deleted\n",
                      with_commas(figures.dirs_walked), with_commas(all), percent(share),
                      with_commas(figures.dirs_changed), with_commas(figures.dirs_new),
                      with_commas(figures.dirs_deleted));
  text += fmt::format("now        {}, {}\n", counted(record.files, "file"), human_bytes(record.bytes));
  text += fmt::format("took       {}; {}\n", human_duration(report.duration), peers_text(gathered));
  text += missed_text(report);
  if (report.history.clock_is_behind) {
    text += "history    nothing is recorded: the clock is over a day behind that of former scans; set it\n";
  }
  if (report.history.refused > 0) {
    text += fmt::format("history    its bounds are reached: directories without any: {}\n",
                        with_commas(report.history.refused));
  }
  for (const auto& gap : report.drive_gaps) {
    text += fmt::format("  walked in full: {}: {}\n", printable(gap.path),
                        printable(gap.message, reason_bytes_max));
  }
  text += mounts_text(report);
  for (const auto& error : report.errors) {
    text += fmt::format("  left for next time: {}: {}\n", printable(error.path),
                        printable(error.message, reason_bytes_max));
  }
  if (record.errors > report.errors.size()) {
    text += fmt::format("  and {} more\n", with_commas(record.errors - report.errors.size()));
  }
  return text;
}

std::string false_positives_text(const scanner::ScanRecord& scan) {
  const auto rate = scan.false_positive_rate();
  return rate ? fmt::format("{} ({})", with_commas(*scan.false_positives()), percent(*rate)) : "-";
}

}  // namespace

std::string ScanOutcome::reason() const {
  if (report != nullptr) return report->record.reason;
  return full ? "a full scan was asked for" : fmt::format("{}", fmt::join(gathered.gaps, "; "));
}

ordered_json scan_json(const ScanOutcome& outcome) {
  static const scanner::ScanReport nothing_walked;
  const auto& gathered = outcome.gathered;
  const auto& report = outcome.report != nullptr ? *outcome.report : nothing_walked;
  const auto& record = report.record;
  ordered_json json{{"scan", record.id},
                    {"cycle", gathered.cycle.value},
                    {"mode", outcome.is_full() ? "full" : "incremental"},
                    {"reason", outcome.reason()},
                    {"dry_run", outcome.report == nullptr},
                    {"partial", outcome.is_partial()},
                    {"resumed", resumed_json(outcome.resumed)},
                    {"peers", peers_json(gathered)},
                    {"unknown_sources", gathered.unknown_sources},
                    {"gaps", gathered.gaps}};
  json["drive_gaps"] = errors_json(report.drive_gaps, "drive", "reason");
  json["unwatched"] = outcome.unwatched;
  json["filter"] = filter_json(outcome);
  json["dirs_walked"] = record.figures.dirs_walked;
  json["dirs_skipped"] = record.figures.dirs_skipped;
  json["dirs_changed"] = record.figures.dirs_changed;
  json["dirs_new"] = record.figures.dirs_new;
  json["dirs_deleted"] = record.figures.dirs_deleted;
  json["audited"] = record.figures.audited;
  json["missed_changes"] = record.figures.missed;
  json["missed"] = report.audit.missed_paths;
  json["oldest_total"] = report.audit.oldest_total ? ordered_json(base::iso_time(*report.audit.oldest_total))
                                                   : ordered_json(nullptr);
  json["files"] = record.files;
  json["bytes"] = record.bytes;
  json["saturated"] = record.bytes == scanner::sum_max;
  json["history"] = history_json(report.history);
  json["limits"] = scanner::limits_json(report.limits);
  json["mounts"] = report.mounts;
  json["errors"] = record.errors;
  json["error_details"] = errors_json(report.errors, "path", "message");
  json["note"] = outcome.note.empty() ? ordered_json(nullptr) : ordered_json(outcome.note);
  json["duration_s"] = std::chrono::duration<double>(report.duration).count();
  return json;
}

std::string scan_text(const ScanOutcome& outcome, bool with_details) {
  std::string gathered = unread_text(outcome.gathered) + saturated_text(outcome);
  for (const std::string& drive : outcome.unwatched)
    gathered += fmt::format("partial    {}\n", printable(drive, reason_bytes_max));
  if (!outcome.note.empty())
    gathered += fmt::format("note       {}\n", printable(outcome.note, reason_bytes_max));
  if (outcome.resumed != nullptr) {
    gathered +=
        fmt::format("resumed    scan {}, which was killed, first: {} of its {} directories had been read\n",
                    outcome.resumed->record.id, with_commas(outcome.resumed->dirs_replayed),
                    with_commas(outcome.resumed->record.figures.dirs_walked));
  }
  if (outcome.report != nullptr) {
    if (with_details) gathered += audit_text(*outcome.report) + filter_text(outcome);
    return report_text(*outcome.report, outcome.gathered) + gathered;
  }
  return fmt::format("marks      {}\n", peers_text(outcome.gathered)) + gathered + filter_text(outcome) +
         fmt::format(
             "a dry run  nothing was walked, nothing stored; a scan now would be {}\n",
             outcome.is_full() ? "full: " + printable(outcome.reason(), reason_bytes_max) : "incremental");
}

std::string scans_text(const std::vector<scanner::ScanRecord>& scans) {
  if (scans.empty()) return "no scan is known\n";
  Table table({"scan", "started", "took", "mode", "walked", "skipped", "changed", "new", "deleted", "errors",
               "missed", "false positives", "files", "size", "remarks"},
              {1, 3, 14});
  for (const scanner::ScanRecord& scan : scans) {
    const scanner::WalkFigures& figures = scan.figures;
    std::string remarks = scan.partial ? "partial" : "";
    if (!scan.reason.empty()) remarks += (remarks.empty() ? "" : "; ") + base::printable(scan.reason);
    table.add({std::to_string(scan.id), base::iso_time(scan.started_at), human_duration(scan.took()),
               scan.walked_everything ? "full" : "incremental", with_commas(figures.dirs_walked),
               with_commas(figures.dirs_skipped), with_commas(figures.dirs_changed),
               with_commas(figures.dirs_new), with_commas(figures.dirs_deleted), with_commas(scan.errors),
               with_commas(figures.missed), false_positives_text(scan), with_commas(scan.files),
               human_bytes(scan.bytes), remarks});
  }
  return table.to_string();
}

}  // namespace spoor::cli
