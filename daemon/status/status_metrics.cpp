#include "daemon/status/status_metrics.h"

#include <prometheus/text_serializer.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <vector>

namespace spoor::daemon {
namespace {

constexpr const char* last_scan_finished = "spoor_last_scan_finished_timestamp_seconds";

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }
double seconds(base::WallTime time) { return seconds(time.time_since_epoch()); }

// Adds a family with one value for each item; the text of its label tells the items apart.
template <class Items, class Text>
auto adds_each(MetricFamilies& families, const Items& items, const char* label, Text text) {
  return [&families, &items, label, text](const char* name, const char* help, auto figure) {
    families.begin(name, help);
    for (const auto& item : items)
      families.add(std::invoke(figure, item), {{label, std::invoke(text, item)}});
  };
}

void add_node(MetricFamilies& families, const StatusSources& from, bool is_ready) {
  families.begin("spoor_build_info", "The version that runs; always 1.");
  families.add(1, {{"version", from.version}});
  families.begin("spoor_node_info", "Which node this is; always 1.");
  families.add(1, {{"cluster", from.node.cluster}, {"node", from.node.node}});
  families.begin("spoor_durability_info", "What an acknowledgement of marks promises; always 1.");
  families.add(1, {{"durability", std::string(tracker::to_string(from.persistence.durability()))}});
  families.add("spoor_ready", "Whether the node is ready, as /readyz reports.", is_ready);
}

void add_marks(MetricFamilies& families, const MarkCounters& counters) {
  families.add("spoor_marks_accepted_total", "Marks acknowledged, known ones included.", counters.accepted);
  families.begin("spoor_marks_accepted_by_identity_total",
                 "Marks acknowledged, by sender: a token, a certificate, a user, or anonymous.");
  for (const auto& [identity, marks] : counters.identities) {
    families.add(marks.accepted, {{"identity", identity}});
  }
  families.add("spoor_marks_new_total", "Marks acknowledged that set something new.", counters.added);
  families.add("spoor_marks_ignored_total",
               "Paths that the namespace rules exclude, and events that mark nothing.", counters.ignored);
  families.add("spoor_mark_requests_rejected_total", "Requests to mark that were refused.",
               counters.rejected);
  families.add("spoor_s3_events_unknown_total", "S3 events of a name that is not known here: not marked.",
               counters.unknown_events);
  families.add("spoor_s3_events_invalid_key_total",
               "S3 events whose key can be no path: the directory above was marked as a tree.",
               counters.invalid_keys);
}

void add_cycles(MetricFamilies& families, const tracker::TrackerStatus& tracker) {
  using Cycle = tracker::SpanFigures;
  const auto newer = [&](const Cycle& cycle) { return std::to_string(&cycle - tracker.cycles.data()); };
  const auto add_each = adds_each(families, tracker.cycles, "position", newer);
  families.add("spoor_cycle_number", "The current cycle.", tracker.current.value);
  families.add("spoor_cycle_age_seconds", "How long the current cycle has been open.",
               seconds(tracker.current_age));
  add_each("spoor_kept_cycle_number",
           "The number of the last cycle of a kept span; position 0 is the current one.",
           [](const Cycle& cycle) { return cycle.last.value; });
  add_each("spoor_kept_cycle_items", "Distinct items in a kept cycle, estimated.",
           [](const Cycle& cycle) { return cycle.filter.whole_items(); });
  add_each("spoor_kept_cycle_density_ratio", "Share of the bits of a kept cycle's filters that are set.",
           [](const Cycle& cycle) { return cycle.filter.density; });
  add_each("spoor_kept_cycle_false_positive_ratio",
           "Share of paths never marked that a kept cycle names all the same, estimated.",
           [](const Cycle& cycle) { return cycle.filter.fp_rate; });
  add_each("spoor_kept_cycle_levels", "Filters of a kept cycle.", &Cycle::levels);
  add_each("spoor_kept_cycle_tree_marks", "Marks on whole subtrees in a kept cycle, gaps included.",
           &Cycle::tree_marks);
  add_each("spoor_kept_cycle_saturated", "Whether a kept cycle holds more than its filters were made for.",
           &Cycle::saturated);
  families.add("spoor_history_dropped_total",
               "Oldest spans of cycles that were dropped because the filters took too much memory.",
               tracker.spans_dropped);
  families.add("spoor_filters_memory_bytes", "Memory that the filters of all kept cycles take.",
               tracker.memory_bytes);
  families.add("spoor_filters_memory_limit_bytes", "Memory that they may take (tracker.memory_limit).",
               tracker.memory_bytes_max);
}

void add_disks(MetricFamilies& families, const StatusSources& from) {
  const SnapshotScheduler& scheduler = from.snapshot_scheduler;
  const tracker::JournalStatus journal = from.persistence.journal_status();
  if (const auto& saved = scheduler.last_durable()) {
    families.add("spoor_snapshot_saved_timestamp_seconds", "When some drive took a snapshot last.",
                 seconds(saved->saved_at));
    families.add("spoor_snapshot_bytes", "Size of that snapshot.", saved->bytes);
    families.add("spoor_snapshot_generation", "Number of that snapshot.", saved->generation);
  }
  families.add("spoor_snapshot_failures_total", "Attempts to save that no drive took.", scheduler.failures());
  families.begin("spoor_drive_ok", "Whether the drive took the last snapshot.");
  if (const auto& tried = scheduler.last()) {
    for (const auto& drive : tried->drives) families.add(drive.ok, {{"drive", drive.drive.native()}});
  }
  families.add("spoor_journal_bytes", "Size of the journal.", journal.bytes);
  families.add("spoor_journal_ok", "Whether marks can be made as durable as promised.",
               from.group_commit.health_error().empty());
  families.add("spoor_journal_failures_total", "Attempts to write the journal that failed.",
               journal.failures);
}

void add_peers(MetricFamilies& families, const std::vector<PeerState>& peers) {
  families.begin("spoor_peers", "Peers by state.");
  for (const char* const state : {"up", "down", "unknown"}) {
    families.add(std::ranges::count(peers, state, &PeerState::state), {{"state", state}});
  }
  adds_each(families, peers, "url", &PeerState::url)(
      "spoor_peer_up", "Whether the peer answered when it was asked last.",
      [](const PeerState& peer) { return peer.state == "up"; });
  families.begin("spoor_peer_last_seen_timestamp_seconds", "When the peer answered last.");
  for (const PeerState& peer : peers) {
    if (peer.last_seen) families.add(seconds(*peer.last_seen), {{"url", peer.url}});
  }
}

void add_peer_tls(MetricFamilies& families, const PeerWatch::TlsExpiry& expiry) {
  if (!expiry.certificate && !expiry.ca) return;
  families.begin("spoor_peers_tls_certificate_expiry_timestamp_seconds",
                 "When a file of peers.tls ends to be valid: of a CA file the last authority.");
  if (expiry.certificate) families.add(seconds(*expiry.certificate), {{"file", "certificate"}});
  if (expiry.ca) families.add(seconds(*expiry.ca), {{"file", "ca"}});
}

void add_etcd(MetricFamilies& families, const EtcdStatus& etcd) {
  families.add("spoor_etcd_ok", "Whether all is well with the membership in etcd.", etcd.ok);
  families.add("spoor_etcd_registered", "Whether the node is alive in etcd.", etcd.registered);
  families.add("spoor_etcd_members", "Members there, those that are down included.", etcd.members);
}

void add_dns(MetricFamilies& families, const std::vector<DnsState>& names) {
  if (names.empty()) return;
  families.begin("spoor_dns_ok", "Whether the last lookup of the name in peers.dns succeeded.");
  for (const DnsState& name : names) families.add(name.error.empty(), {{"source", name.source}});
  families.begin("spoor_dns_members", "Addresses of the name; while lookups fail, the last known ones.");
  for (const DnsState& name : names) families.add(name.members, {{"source", name.source}});
}

// Names and help texts are those of docs/recipes/node-exporter-textfile.
void add_last_scan(MetricFamilies& families, const scanner::ScanRecord& scan) {
  const scanner::WalkFigures& walk = scan.figures;
  families.add("spoor_last_scan_number", "Number of the last scan.", scan.id);
  families.add(last_scan_finished, "When the last scan was done.", seconds(scan.finished_at));
  families.add("spoor_last_scan_duration_seconds", "How long the last scan took.", seconds(scan.took()));
  families.add("spoor_last_scan_full", "Whether it walked everything.", scan.walked_everything);
  families.add("spoor_last_scan_partial", "Whether some peer did not answer.", scan.partial);
  families.add("spoor_last_scan_errors", "Drives and directories left for the next scan.", scan.errors);
  families.begin("spoor_last_scan_directories", "Directories by what the last scan did with them or found.");
  families.add(walk.dirs_walked, {{"kind", "walked"}});
  families.add(walk.dirs_skipped, {{"kind", "skipped"}});
  families.add(walk.dirs_changed, {{"kind", "changed"}});
  families.add(walk.dirs_new, {{"kind", "new"}});
  families.add(walk.dirs_deleted, {{"kind", "deleted"}});
  families.add("spoor_last_scan_audited_directories", "Directories that the last scan read for the audit.",
               walk.audited);
  families.add("spoor_last_scan_missed_changes", "Of those, the ones that had changed without a mark.",
               walk.missed);
  if (const auto rate = scan.false_positive_rate()) {
    families.add("spoor_last_scan_false_positive_ratio",
                 "Share of the directories read that were found as before.", *rate);
  }
  families.add("spoor_usage_files", "Files on all drives.", scan.files);
  families.add("spoor_usage_bytes", "Apparent size of all files.", scan.bytes);
}

void add_limits(MetricFamilies& families, std::vector<scanner::LimitState> limits) {
  // No scan could ask for the totals of the cluster yet.
  std::erase_if(limits, [](const scanner::LimitState& state) { return state.scan == 0; });
  if (limits.empty()) return;
  using Labels = MetricFamilies::Labels;
  const auto labels_of = [](const scanner::LimitState& state) {
    Labels labels{{"path", state.limit.path}};
    if (state.limit.of_cluster) labels.emplace_back("scope", "cluster");
    return labels;
  };
  families.begin("spoor_usage_limit_exceeded", "Whether a directory exceeds its limit (usage.limits).");
  for (const scanner::LimitState& state : limits) {
    const auto add = [&](std::uint64_t limit, const char* name, bool exceeds) {
      if (limit == 0) return;
      Labels labels = labels_of(state);
      labels.emplace(labels.begin(), "limit", name);
      families.add(exceeds, labels);
    };
    add(state.limit.bytes, "bytes", state.exceeds_bytes());
    add(state.limit.files, "files", state.exceeds_files());
    add(state.limit.growth_per_day, "growth_per_day", state.exceeds_growth());
  }
  families.begin("spoor_usage_limit_bytes", "Apparent size of a directory with a limit.");
  for (const auto& state : limits) families.add(state.bytes, labels_of(state));
  families.begin("spoor_usage_limit_files", "Files of a directory with a limit.");
  for (const auto& state : limits) families.add(state.files, labels_of(state));
  families.begin("spoor_usage_limit_growth_bytes",
                 "Growth of a directory with a limit in the day before the last scan.");
  for (const auto& state : limits) {
    if (state.growth_per_day) families.add(*state.growth_per_day, labels_of(state));
  }
}

void add_watch(MetricFamilies& families, const std::vector<WatchState>& watch) {
  std::optional<base::WallTime> reported_at;
  for (const WatchState& drive : watch) reported_at = std::max(reported_at, drive.reported_at);
  families.add("spoor_watch_last_report_timestamp_seconds",
               "When spoor-watch last reported; 0: not since the start of spoord.",
               reported_at ? seconds(*reported_at) : 0);
  const auto add_each = adds_each(families, watch, "drive", &WatchState::drive);
  add_each("spoor_watch_drive_ok", "Whether spoor-watch marks what changes on the drive.",
           [](const WatchState& drive) { return drive.error.empty(); });
  add_each("spoor_watch_events_total", "Events that the kernel reported.",
           [](const WatchState& drive) { return drive.last.figures.events; });
  add_each("spoor_watch_marks_total", "Marks of them that the daemon acknowledged.",
           [](const WatchState& drive) { return drive.last.figures.marks; });
  add_each("spoor_watch_coalesced_events_total", "Events whose mark another event of the batch made.",
           [](const WatchState& drive) { return drive.last.figures.coalesced; });
  add_each("spoor_watch_gaps_total", "Times in which changes may have been missed.",
           [](const WatchState& drive) { return drive.last.figures.gaps; });
  add_each("spoor_watch_queue_bytes_max", "The most that waited in the kernel's queue.",
           [](const WatchState& drive) { return drive.last.figures.queue_bytes_max; });
  add_each("spoor_watch_pending_marks", "Marks that the daemon has not acknowledged yet.",
           [](const WatchState& drive) { return drive.last.figures.pending_marks; });
  add_each("spoor_watch_lag_seconds", "How long the oldest of them has waited.",
           [](const WatchState& drive) { return drive.last.figures.lag_seconds; });
}

std::string publish_metrics(const scanner::PublishRecord& publish,
                            const std::optional<scanner::ScanRecord>& last) {
  MetricFamilies families;
  families.add("spoor_publish_last_report_timestamp_seconds", "When spoor-publish last wrote its figures.",
               seconds(publish.written_at));
  const auto add_each = adds_each(families, publish.sinks, "sink", &scanner::SinkFigures::name);
  add_each("spoor_publish_sink_ok", "Whether the last attempt to publish to the sink succeeded.",
           [](const scanner::SinkFigures& sink) { return sink.error.empty(); });
  add_each(
      "spoor_publish_lag_scans", "Scans whose changes are not published yet.",
      [&](const scanner::SinkFigures& sink) { return last ? last->id - std::min(last->id, sink.scan) : 0; });
  add_each(
      "spoor_publish_last_success_timestamp_seconds",
      "When the sink last acknowledged events, or nothing was left to publish.",
      [](const scanner::SinkFigures& sink) { return sink.last_success ? seconds(*sink.last_success) : 0; });
  add_each("spoor_publish_events_total", "Events that the sink acknowledged.", &scanner::SinkFigures::events);
  add_each("spoor_publish_failures_total", "Requests that the sink did not acknowledge.",
           &scanner::SinkFigures::failures);
  add_each("spoor_publish_resets_total", "Times in which changes were no longer kept.",
           &scanner::SinkFigures::resets);
  return families.text();
}

}  // namespace

void MetricFamilies::begin(std::string name, std::string help) {
  const auto type =
      name.ends_with("_total") ? prometheus::MetricType::Counter : prometheus::MetricType::Gauge;
  families_.push_back({std::move(name), std::move(help), type, {}});
}

void MetricFamilies::add_value(double value, const Labels& labels) {
  prometheus::ClientMetric& metric = families_.back().metric.emplace_back();
  for (const auto& [name, text] : labels) metric.label.push_back({name, text});
  const bool is_counter = families_.back().type == prometheus::MetricType::Counter;
  (is_counter ? metric.counter.value : metric.gauge.value) = value;
}

std::string MetricFamilies::text() const {
  std::vector<prometheus::MetricFamily> filled;
  std::ranges::copy_if(families_, std::back_inserter(filled),
                       [](const prometheus::MetricFamily& family) { return !family.metric.empty(); });
  return prometheus::TextSerializer().Serialize(filled);
}

std::string status_metrics(const StatusSources& from, const MarkCounters& counters, bool is_ready) {
  MetricFamilies families;
  add_node(families, from, is_ready);
  add_marks(families, counters);
  add_cycles(families, from.persistence.tracker().status());
  add_disks(families, from);
  add_peers(families, from.peers.others());
  add_peer_tls(families, from.peers.tls_expiry());
  if (from.etcd != nullptr) add_etcd(families, from.etcd->status());
  add_dns(families, from.peers.dns_states());
  const std::vector<WatchState> watch = from.watched.states();
  if (!watch.empty()) add_watch(families, watch);
  return families.text();
}

std::string scan_metrics(const ScanFigures& scans) {
  MetricFamilies families;
  families.add("spoor_scans_total", "Scans of this node that were finished.", scans.scans);
  families.add("spoor_scan_audited_directories_total", "Directories that they read for the audit.",
               scans.audited);
  families.add("spoor_scan_missed_changes_total", "Of those, the ones that had changed without a mark.",
               scans.missed);
  families.add("spoor_scan_errors_total", "Drives and directories that they left for a later one.",
               scans.errors);
  if (scans.has_database) {
    families.add("spoor_scan_database_ok", "Whether the scan database can be read.", scans.ok);
  }
  if (scans.last) {
    add_last_scan(families, *scans.last);
    add_limits(families, scans.limits);
  } else if (scans.is_known && scans.ok) {
    families.add(last_scan_finished, "When the last scan was done.", 0);
  }
  if (scans.space) {
    families.add("spoor_data_dir_available_bytes", "What the daemon may still write to node.data_dir.",
                 scans.space->available);
    families.add("spoor_data_dir_size_bytes", "Size of the file system of node.data_dir.",
                 scans.space->capacity);
  }
  std::string text = families.text();
  if (scans.publish) text += publish_metrics(*scans.publish, scans.last);
  return text;
}

}  // namespace spoor::daemon
