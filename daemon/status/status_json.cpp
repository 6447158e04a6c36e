#include "daemon/status/status_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "base/printable.h"

namespace spoor::daemon {
namespace {

using json = nlohmann::ordered_json;

json text_or_null(const std::string& text) { return text.empty() ? json(nullptr) : json(text); }

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

json cycles_json(const tracker::TrackerStatus& status) {
  json cycles = json::array();
  for (const tracker::SpanFigures& cycle : status.cycles) {
    cycles.push_back({{"first_cycle", cycle.first.value},
                      {"cycle", cycle.last.value},
                      {"items", cycle.filter.whole_items()},
                      {"bits", cycle.filter.bits},
                      {"density", cycle.filter.density},
                      {"fp_rate", cycle.filter.fp_rate},
                      {"levels", cycle.levels},
                      {"saturated", cycle.saturated},
                      {"tree_marks", cycle.tree_marks}});
  }
  return cycles;
}

json peers_json(const std::vector<PeerState>& states) {
  json peers = json::array();
  for (const PeerState& peer : states) {
    peers.push_back({{"name", text_or_null(peer.name)},
                     {"url", peer.url},
                     {"state", peer.state},
                     {"last_seen", peer.last_seen ? json(base::iso_time(*peer.last_seen)) : json(nullptr)},
                     {"error", text_or_null(peer.error)}});
  }
  return peers;
}

json writers_json(const MarkCounters& counters) {
  json writers = json::array();
  for (const auto& [identity, marks] : counters.identities) {
    writers.push_back(
        {{"identity", identity}, {"accepted", marks.accepted}, {"last_at", base::iso_time(marks.last_at)}});
  }
  return writers;
}

json etcd_json(const EtcdMembership* etcd) {
  if (etcd == nullptr) return nullptr;
  const EtcdStatus& status = etcd->status();
  return {{"ok", status.ok},
          {"error", text_or_null(status.error)},
          {"registered", status.registered},
          {"members", status.members}};
}

json dns_json(const std::vector<DnsState>& names) {
  json all = json::array();
  for (const DnsState& name : names) {
    all.push_back({{"source", name.source},
                   {"ok", name.error.empty()},
                   {"error", text_or_null(name.error)},
                   {"members", name.members}});
  }
  return all;
}

// The last snapshot saved, and the result of the last attempt on each drive.
json snapshot_status(const SnapshotScheduler& scheduler) {
  if (!scheduler.last()) return nullptr;
  json status = {{"saved_at", nullptr}, {"bytes", 0}, {"generation", 0}};
  if (scheduler.last_durable()) status = snapshot_json(*scheduler.last_durable());
  status["drives"] = drives_json(scheduler.last()->drives);
  status["failures"] = scheduler.failures();
  return status;
}

std::string peers_text(const std::vector<PeerState>& peers) {
  if (peers.empty()) return "no peers";
  const auto up = std::ranges::count(peers, "up", &PeerState::state);
  return fmt::format("{} of {} peer{} up", up, peers.size(), peers.size() == 1 ? "" : "s");
}

}  // namespace

json space_json(const std::optional<base::DiskSpace>& space) {
  if (!space) return nullptr;
  return {{"file_system", space->type},
          {"bytes", space->bytes},
          {"used_bytes", space->used_bytes},
          {"free_bytes", space->free_bytes}};
}

json drives_json(const std::vector<tracker::DriveState>& states) {
  json drives = json::array();
  for (const tracker::DriveState& drive : states) {
    drives.push_back({{"path", base::printable(drive.drive.native())},
                      {"ok", drive.ok},
                      {"error", text_or_null(drive.error)},
                      {"id", text_or_null(drive.id)},
                      {"space", space_json(drive.space)}});
  }
  return drives;
}

json watch_json(const std::vector<WatchState>& watch) {
  if (watch.empty()) return nullptr;
  json drives = json::array();
  std::optional<base::WallTime> reported_at;
  for (const WatchState& each : watch) {
    reported_at = std::max(reported_at, each.reported_at);
    const peer::WatchFigures& figures = each.last.figures;
    json drive{{"path", base::printable(each.drive)},
               {"ok", each.error.empty()},
               {"error", text_or_null(base::printable(each.error))},
               {"failing_since", nullptr},
               {"last_gap", nullptr},
               {"events", figures.events},
               {"marks", figures.marks},
               {"coalesced", figures.coalesced},
               {"gaps", figures.gaps},
               {"queue_bytes_max", figures.queue_bytes_max},
               {"pending_marks", figures.pending_marks},
               {"lag_s", figures.lag_seconds}};
    if (!each.error.empty()) drive["failing_since"] = base::iso_time(each.failing_since);
    if (const peer::DriveGap& gap = each.last.gap; !gap.id.empty())
      drive["last_gap"] = {{"at", base::iso_time(gap.at)}, {"reason", gap.reason}};
    drives.push_back(std::move(drive));
  }
  return {{"reported_at", reported_at ? json(base::iso_time(*reported_at)) : json(nullptr)},
          {"drives", std::move(drives)}};
}

json snapshot_json(const tracker::SavedSnapshot& saved) {
  return {{"saved_at", base::iso_time(saved.saved_at)},
          {"bytes", saved.bytes},
          {"generation", saved.generation},
          {"drives", drives_json(saved.drives)}};
}

json status_json(const StatusSources& from, const MarkCounters& counters, std::chrono::nanoseconds uptime) {
  const tracker::TrackerStatus tracker = from.persistence.tracker().status();
  const tracker::JournalStatus journal = from.persistence.journal_status();
  const std::string health_error = from.group_commit.health_error();
  return {{"node", from.node.node},
          {"cluster", from.node.cluster},
          {"instance", tracker.instance.to_string()},
          {"version", from.version},
          {"uptime_s", seconds(uptime)},
          {"cycle",
           {{"current", tracker.current.value},
            {"opened_at", base::iso_time(tracker.current_opened_at)},
            {"age_s", seconds(tracker.current_age)}}},
          {"cycles", cycles_json(tracker)},
          {"filters",
           {{"bytes", tracker.memory_bytes},
            {"bytes_max", tracker.memory_bytes_max},
            {"spans_dropped", tracker.spans_dropped}}},
          {"marks",
           {{"accepted", counters.accepted},
            {"ignored", counters.ignored},
            {"new", counters.added},
            {"rejected", counters.rejected}}},
          {"writers", writers_json(counters)},
          {"snapshot", snapshot_status(from.snapshot_scheduler)},
          {"journal",
           {{"bytes", journal.bytes},
            {"durability", tracker::to_string(from.persistence.durability())},
            {"ok", health_error.empty()},
            {"error", text_or_null(health_error)},
            {"failures", journal.failures}}},
          {"peers", peers_json(from.peers.others())},
          {"membership", {{"etcd", etcd_json(from.etcd)}, {"dns", dns_json(from.peers.dns_states())}}},
          {"watch", watch_json(from.watched.states())},
          {"limits", scanner::limits_json(from.scans.figures().limits)}};
}

std::string status_line(tracker::CycleId current, const std::vector<PeerState>& peers,
                        tracker::Durability durability, const std::vector<std::string>& health_errors) {
  const std::string start = fmt::format("cycle {}, {}", current.value, peers_text(peers));
  if (!health_errors.empty()) return fmt::format("{}; errors: {}", start, fmt::join(health_errors, "; "));
  return start + (durability == tracker::Durability::memory ? ", no journal" : ", journal ok");
}

}  // namespace spoor::daemon
