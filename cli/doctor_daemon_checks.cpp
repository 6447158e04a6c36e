#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/data_dir.h"
#include "base/printable.h"
#include "cli/doctor.h"
#include "cli/program/format.h"
#include "cli/usage/usage_report.h"
#include "config/derived.h"
#include "scanner/report_json.h"
#include "tracker/storage/persistence.h"

namespace spoor::cli {
namespace {

using nlohmann::ordered_json;
using std::chrono::seconds;

constexpr unsigned server_failed = 500;  // the first such status (RFC 9110, section 15.6)
constexpr unsigned save_intervals_max = 3;
constexpr seconds save_age_min{60};
constexpr std::chrono::hours scan_age_max{26};                // a daily timer, with a delay
constexpr std::chrono::duration<double> quiet_time_min{900};  // without a mark
constexpr std::size_t partial_scans_max = 3;                  // as many as collect_facts() reads

std::string age_text(const Facts& facts, base::WallTime time) { return human_duration(facts.now - time); }

// The command that scans this node.
std::string scan_command(const Facts& facts, const std::string& more = {}) {
  if (facts.is_daemon_user) return facts.spoor + " scan" + more;
  return more.empty() ? "systemctl start spoor-scan" : "run as root: " + facts.spoor + " scan" + more;
}

std::vector<scanner::ScanRecord> last_scans(const Facts& facts) {
  if (!facts.daemon.scans.is_ok()) return {};
  auto scans = scanner::scans_from_json(facts.daemon.scans.body);
  return scans ? *std::move(scans) : std::vector<scanner::ScanRecord>();
}

void check_watched_drive(const Facts& facts, const ordered_json& state, Findings& findings) {
  const std::string path = base::printable(state.at("path").get<std::string>());
  if (!state.at("ok").get<bool>()) {
    const bool is_partial = facts.config.watch.unwatched == config::Unwatched::partial;
    findings.error(
        fmt::format("{} is not watched since {}: {}", path, text_or(state.at("failing_since"), "?"),
                    text_or(state.at("error"), "?")),
        is_partial ? "scans are partial: they miss what changes on it" : "each scan walks all of it",
        "systemctl restart spoor-watch; journalctl -u spoor-watch");
    return;
  }
  const auto scans = last_scans(facts);
  if (!state.at("last_gap").is_object() || scans.empty()) return;
  const auto at = base::parse_iso_time(state.at("last_gap").at("at").get<std::string>());
  if (!at || *at <= scans.front().started_at) return;
  findings.warning(fmt::format("changes on {} may have been missed at {}: {}", path, base::iso_time(*at),
                               state.at("last_gap").at("reason").get<std::string>()),
                   "totals lack them until a scan has walked all of the drive", scan_command(facts));
}

void check_damage(const Facts& facts, Findings& findings) {
  const Answer& scans = facts.daemon.scans;
  if (scans.status != server_failed) return findings.not_checked(scans.error);
  for (const auto& [user, names] : files_of_others(facts)) {
    const auto is_database = [](const std::string& name) {
      return name.starts_with(base::data_dir::scan_database);
    };
    if (std::ranges::any_of(names, is_database))
      return findings.not_checked("another user owns scan.db: see permissions");
  }
  findings.error(fmt::format("scan.db can't be read: {}", scans.error),
                 "there are no totals and no change feed until it is built anew",
                 scan_command(facts, " --rebuild"));
}

void check_daemon(const Facts& facts, Findings& findings) {
  const DaemonFacts& daemon = facts.daemon;
  if (daemon.is_down) {
    findings.error(fmt::format("the daemon does not respond at {}: {}", daemon.endpoint, daemon.error),
                   "no mark is acknowledged, and scans of other nodes leave this one",
                   "systemctl restart spoord; journalctl -u spoord");
    return;
  }
  if (daemon.status.status >= server_failed) {
    findings.error(fmt::format("the daemon fails at {}: {}", daemon.endpoint, daemon.error),
                   "marks and the scans of other nodes may fail, too", "journalctl -u spoord -p warning");
    return;
  }
  if (!daemon.status.is_ok()) {
    findings.not_checked(
        fmt::format("{}: {}; run it as root, or give --token-file", daemon.endpoint, daemon.error));
    return;
  }
  const auto node = daemon.status.body.at("node").get<std::string>();
  const auto cluster = daemon.status.body.at("cluster").get<std::string>();
  if (node == facts.config.node.name && cluster == facts.config.node.cluster) return;
  findings.error(
      fmt::format("at {} is node {} of cluster {}, and the configuration is that of {} of {}",
                  daemon.endpoint, node, cluster, facts.config.node.name, facts.config.node.cluster),
      "another daemon runs there, or an older configuration", "systemctl restart spoord");
}

// What check_journal(), check_drives(), check_watch() and check_etcd() report is not repeated.
void check_ready(const Facts& facts, Findings& findings) {
  const Answer& ready = facts.daemon.ready;
  if (ready.is_ok()) return;
  if (!ready.body.is_object() || !ready.body.contains("reasons")) return findings.not_checked(ready.error);
  const auto& etcd = facts.daemon.status.body.at("membership").at("etcd");
  const bool is_etcd_reported =
      etcd.is_object() && !(etcd.at("ok").get<bool>() && etcd.at("registered").get<bool>());
  for (const auto& reason : ready.body.at("reasons")) {
    const auto text = reason.get<std::string>();
    const bool is_of_etcd = is_etcd_reported && text.find("etcd") != std::string::npos;
    const bool is_of_watch = text.find(" is not watched: ") != std::string::npos;
    if (text.starts_with("journal: ") || text.starts_with("drive ") || is_of_watch || is_of_etcd) continue;
    findings.error(fmt::format("the daemon is not ready: {}", text), "marks may not be kept",
                   "journalctl -u spoord -p warning");
  }
}

void check_journal(const Facts& facts, Findings& findings) {
  const auto& journal = facts.daemon.status.body.at("journal");
  if (journal.at("ok").get<bool>()) return;
  findings.error(fmt::format("the journal can't be written: {}", text_or(journal.at("error"), "?")),
                 "no mark is acknowledged",
                 fmt::format("make space on, or repair, the disk of {0}: df -h {0}; the daemon retries",
                             shell_quoted(facts.config.node.data_dir.native())));
}

void check_etcd(const Facts& facts, Findings& findings) {
  const auto& etcd = facts.daemon.status.body.at("membership").at("etcd");
  if (!etcd.is_object()) return;
  if (!etcd.at("ok").get<bool>()) {
    findings.error(fmt::format("etcd fails: {}", text_or(etcd.at("error"), "?")),
                   "new members are not known, so scans are partial; later marks are not acknowledged",
                   "see \"SpoorEtcdFails\" in /usr/share/doc/spoor/docs/troubleshooting.md, then: etcdctl "
                   "endpoint health");
  } else if (!etcd.at("registered").get<bool>()) {
    findings.error(fmt::format("this node is not registered in etcd: {}", text_or(etcd.at("error"), "?")),
                   "scans of other nodes do not read it", "systemctl restart spoord");
  }
}

void check_dns(const Facts& facts, Findings& findings) {
  for (const auto& name : facts.daemon.status.body.at("membership").at("dns")) {
    if (name.at("ok").get<bool>()) continue;
    findings.error(fmt::format("{} can't be looked up: {}", name.at("source").get<std::string>(),
                               text_or(name.at("error"), "?")),
                   "new members are not known, so scans are partial",
                   "resolvectl query the name; see \"SpoorDnsFails\" in "
                   "/usr/share/doc/spoor/docs/troubleshooting.md");
  }
}

void check_snapshot(const Facts& facts, Findings& findings) {
  const auto& snapshot = facts.daemon.status.body.at("snapshot");
  const auto& journal = facts.daemon.status.body.at("journal");
  if (!snapshot.is_object() || !snapshot.at("saved_at").is_string()) return;  // check_drives() has the reason
  const auto saved_at = base::parse_iso_time(snapshot.at("saved_at").get<std::string>());
  const auto age_max = std::max<std::chrono::nanoseconds>(
      save_intervals_max * facts.config.tracker.save_interval, save_age_min);
  if (!saved_at || facts.now - *saved_at <= age_max) return;
  const auto waiting = journal.at("bytes").get<std::uint64_t>();
  const std::uint64_t bytes_max = tracker::Persistence::Options().journal_bytes_max;
  if (waiting <= bytes_max / 2) return;  // it saves at once beyond that: it has only been idle
  findings.warning(fmt::format("the last snapshot was saved {} ago, and the journal has {} of newer marks",
                               age_text(facts, *saved_at), human_bytes(waiting)),
                   fmt::format("a start takes longer; if the journal reaches {}, marks are not acknowledged",
                               human_bytes(bytes_max)),
                   "journalctl -u spoord -p warning; systemctl restart spoord");
}

void check_filters(const Facts& facts, Findings& findings) {
  const auto dropped = facts.daemon.status.body.at("filters").value("spans_dropped", std::uint64_t{0});
  if (dropped > 0) {
    findings.warning(
        fmt::format(
            "the filters took half of tracker.memory_limit: spans of cycles dropped since the start: {}",
            dropped),
        "a node that last scanned before them walks everything once; no change is missed",
        "raise tracker.memory_limit, or scan more often on the node that scans least");
  }
  const auto& cycles = facts.daemon.status.body.at("cycles");
  if (cycles.empty() || !cycles.at(0).at("saturated").get<bool>()) return;
  findings.warning(
      fmt::format("the filter of the current cycle, {}, is saturated",
                  cycles.at(0).at("cycle").get<std::uint64_t>()),
      "scans walk directories that have not changed; no change is missed",
      fmt::format("{}  # if it stays: scan more often, or raise tracker.memory_limit", scan_command(facts)));
}

void check_watch(const Facts& facts, Findings& findings) {
  const auto wanted = config::watched_drives(facts.config);
  if (wanted.empty() && facts.is_watch_enabled) {
    findings.error(
        "spoor-watch is enabled, and watch.drives names no drive: it does not start",
        "changes that no application marks are missed until the audit reads them",
        fmt::format("set \"watch\": {{\"drives\": \"all\"}} in {}, then: systemctl restart spoor-watch",
                    shell_quoted(facts.config_file)));
  }
  if (wanted.empty()) return;
  const auto& watch = facts.daemon.status.body.at("watch");
  for (const auto& drive : wanted) {
    const auto path = base::printable(drive.native());
    const auto& states = watch.is_object() ? watch.at("drives") : ordered_json::array();
    const auto found =
        std::ranges::find_if(states, [&](const ordered_json& state) { return state.at("path") == path; });
    if (found != states.end()) {
      check_watched_drive(facts, *found, findings);
    } else {
      findings.error(fmt::format("{} is in watch.drives, and spoord does not know that", path),
                     "/readyz does not report whether it is watched", "systemctl reload spoord");
    }
  }
}

void check_scan(const Facts& facts, Findings& findings) {
  constexpr unsigned not_found = 404;
  if (facts.daemon.scans.status == not_found) {
    findings.warning("this node was never scanned", "there are no totals", scan_command(facts));
    return;
  }
  if (!facts.daemon.scans.is_ok()) return check_damage(facts, findings);
  if (facts.data_dir && facts.data_dir->files.contains("scan.db.damaged")) {
    findings.error("scan.db is damaged: a program could not read a part of it",
                   "some totals, changes or histories are not shown until it is built anew",
                   scan_command(facts));
  }
  const auto scans = last_scans(facts);
  if (scans.empty()) return;
  const scanner::ScanRecord& last = scans.front();
  if (facts.now - last.finished_at > scan_age_max) {
    findings.warning(
        fmt::format("the last scan that succeeded ended {} ago", age_text(facts, last.finished_at)),
        "the totals are old",
        fmt::format("{}; systemctl enable --now spoor-scan.timer", scan_command(facts)));
  }
  if (last.errors > 0) {
    findings.warning(fmt::format("the last scan left {} directories or drives", last.errors),
                     "they keep older totals", scan_command(facts));
  }
  const bool is_partial =
      std::ranges::all_of(scans, [](const scanner::ScanRecord& scan) { return scan.partial; });
  if (is_partial && scans.size() >= partial_scans_max) {
    findings.warning(fmt::format("the last {} scans were partial: a peer did not respond", scans.size()),
                     "changes that this peer knows are in no total",
                     scan_command(facts) +
                         "  # it names the peer; if that was renamed or removed, see \"Renaming "
                         "a node\" in /usr/share/doc/spoor/docs/operations.md");
  }
}

// A scan does not read what changed where nothing marks. Any node may have the marks of any drive.
void check_marks(const Facts& facts, Findings& findings) {
  const auto unwatched = config::unwatched_drives(facts.config);
  const auto& marks = facts.daemon.status.body.value("marks", ordered_json::object());
  if (unwatched.empty() || marks.value("accepted", std::uint64_t{1}) > 0) return;
  if (facts.daemon.status.body.value("uptime_s", 0.0) < quiet_time_min.count()) return;
  const bool reads_others = facts.config.scan.daemons == config::Daemons::all;
  const auto may_have_marks = [](const PeerFacts& peer) { return peer.accepted != 0; };
  if (reads_others && std::ranges::any_of(facts.peers, may_have_marks)) return;
  findings.warning(fmt::format("nothing has marked a change since the daemon started, and {} not watched",
                               unwatched.size() == 1 ? base::printable(unwatched.front().native()) + " is"
                                                     : counted(unwatched.size(), "drive") + " are"),
                   "scans do not read what changes there, and totals stay as they are",
                   "install spoor-watch, and set \"watch\": {\"drives\": \"all\"} (see spoor-watch(8)); or "
                   "let the writers "
                   "mark");
}

void check_limits(const Facts& facts, Findings& findings) {
  const auto limits = facts.daemon.status.body.value("limits", ordered_json::array());
  for (const scanner::LimitState& state : scanner::limits_from_json(limits)) {
    if (!state.is_exceeded()) continue;
    const std::string of = state.limit.path.empty() ? "" : " " + shell_quoted(state.limit.path);
    findings.warning(
        exceeded_limit(state), "usage.limits asks for a warning; nothing is refused",
        fmt::format("{} usage{}{}", facts.spoor, of, state.limit.of_cluster ? " --cluster" : ""));
  }
}

constexpr Check checks_of_daemon[] = {
    {"daemon", false, check_daemon},  {"journal", true, check_journal}, {"etcd", true, check_etcd},
    {"dns", true, check_dns},         {"ready", true, check_ready},     {"snapshot", true, check_snapshot},
    {"filters", true, check_filters}, {"watch", true, check_watch},     {"marks", true, check_marks},
    {"scan", true, check_scan},       {"limits", true, check_limits},
};

}  // namespace

std::span<const Check> daemon_checks() { return checks_of_daemon; }

}  // namespace spoor::cli
