#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>

#include "base/printable.h"
#include "cli/doctor.h"
#include "cli/program/format.h"
#include "config/derived.h"
#include "scanner/report_json.h"

namespace spoor::cli {
namespace {

using std::chrono::seconds;

constexpr seconds clock_tolerance{5};    // of times on this node
constexpr seconds clock_difference{10};  // between nodes
constexpr std::size_t missing_max = 10;  // a hostile peer may make up any number

// For messages: "n1 (http://10.0.0.1:7420)".
std::string name_of(const PeerFacts& peer) {
  const std::string url = base::printable(peer.url);
  return peer.node.empty() ? url : fmt::format("{} ({})", base::printable(peer.node), url);
}

void check_time(const Facts& facts, const std::string& what, const std::optional<base::WallTime>& time,
                Findings& findings) {
  if (!time || *time <= facts.now + clock_tolerance) return;
  findings.error(fmt::format("the clock is behind: {} is of {}, and now is {}", what, base::iso_time(*time),
                             base::iso_time(facts.now)),
                 "no history is recorded and no certificate is judged correctly until it is right",
                 "timedatectl set-ntp true");
}

// The other nodes, without those that are this one under another URL.
std::vector<PeerFacts> others(const Facts& facts) {
  std::vector<PeerFacts> peers = facts.peers;
  std::erase_if(peers, [&](const PeerFacts& peer) { return peer.run && peer.run == facts.own_run; });
  return peers;
}

// Whether scans read the marks of other nodes.
bool reads_others(const Facts& facts) { return facts.config.scan.daemons == config::Daemons::all; }

// What there is to do about a peer that does not respond, if nothing depends on its marks.
std::string without_others(const Facts& facts) {
  if (facts.config.drives.empty() || !config::unwatched_drives(facts.config).empty()) return {};
  return "; or set scan.daemons to \"own\", if no other host writes to these drives: spoor-watch marks all "
         "that changes there";
}

void check_clock(const Facts& facts, Findings& findings) {
  if (facts.daemon.status.is_ok()) {
    const auto& snapshot = facts.daemon.status.body.at("snapshot");
    if (snapshot.is_object())
      check_time(facts, "the last snapshot", base::parse_iso_time(text_or(snapshot.at("saved_at"), "")),
                 findings);
  }
  if (facts.daemon.scans.is_ok()) {
    const auto scans = scanner::scans_from_json(facts.daemon.scans.body);
    if (scans && !scans->empty()) check_time(facts, "the last scan", scans->front().started_at, findings);
  }
  for (const PeerFacts& peer : facts.peers) {
    if (!peer.clock_ahead || std::chrono::abs(*peer.clock_ahead) <= clock_difference) continue;
    findings.warning(fmt::format("the clock of {} is {} {} that of this node", name_of(peer),
                                 human_duration(std::chrono::abs(*peer.clock_ahead)),
                                 peer.clock_ahead->count() > 0 ? "ahead of" : "behind"),
                     "times of totals can't be compared, and certificates are judged by it",
                     "on both nodes: timedatectl set-ntp true");
  }
}

void check_peers(const Facts& facts, Findings& findings) {
  const std::string config = shell_quoted(facts.config_file);
  for (const PeerFacts& peer : facts.peers) {
    if (peer.is_of_other_cluster) {
      findings.error(
          fmt::format("{} belongs to another cluster", name_of(peer)),
          "scans can't read its marks: each is partial",
          fmt::format("remove it from \"peers\" in {}, or correct node.cluster there, then: systemctl "
                      "reload spoord",
                      config));
    } else if (peer.is_down && reads_others(facts)) {
      findings.error(
          fmt::format("{} does not respond: {}", name_of(peer), base::printable(peer.error)),
          "scans can't read its marks: each is partial",
          std::string(peer.node.empty() && facts.config.peers.tls
                          ? "if it has not joined yet: spoor setup --invite; "
                          : "") +
              "on that node: systemctl restart spoord; if it is gone for good, see \"SpoorPeerDown\" in "
              "/usr/share/doc/spoor/docs/troubleshooting.md" +
              without_others(facts));
    } else if (!peer.not_asked.empty()) {
      findings.not_checked(fmt::format("{}: {}", name_of(peer), base::printable(peer.not_asked)));
    }
  }
}

// What each node shows of the cluster is made of its own peers.
void check_members(const Facts& facts, Findings& findings) {
  const auto peers = others(facts);
  const auto is_unknown = [](const PeerFacts& peer) { return peer.node.empty(); };
  if (!reads_others(facts) || std::ranges::any_of(peers, is_unknown)) return;
  std::map<std::string, std::pair<std::string, std::string>>
      missing;  // by node: its URL, and where it is a peer
  for (const PeerFacts& peer : peers) {
    for (const auto& [node, url] : peer.peers) {
      const auto endpoint = base::parse_endpoint(url);
      const bool may_be_listed = endpoint && (endpoint->is_tls || !facts.config.peers.tls);
      const bool is_known = node.empty() || node == facts.config.node.name || !may_be_listed ||
                            url.starts_with("unix:") ||  // of that machine alone
                            std::ranges::find(peers, node, &PeerFacts::node) != peers.end();
      if (!is_known && missing.size() < missing_max) missing.try_emplace(node, url, name_of(peer));
    }
  }
  for (const auto& [node, place] : missing) {
    findings.warning(
        fmt::format("{}, a peer of {}, is none of this node", base::printable(node), place.second),
        "totals of the cluster exclude it here",
        fmt::format("{} setup --add-peer {}", facts.spoor, shell_quoted(place.first)));
  }
}

void check_names(const Facts& facts, Findings& findings) {
  std::map<std::string, const PeerFacts*> known;
  const auto peers = others(facts);
  for (const PeerFacts& peer : peers) {
    if (!peer.run) continue;
    const auto [first, is_new] = known.try_emplace(peer.node, &peer);
    const bool is_own_name = facts.own_run && peer.node == facts.config.node.name;
    const bool is_duplicate = is_own_name || (!is_new && first->second->run != peer.run);
    if (!is_duplicate) continue;
    findings.error(fmt::format("{} and {} have one name", name_of(peer),
                               is_own_name ? "this node" : name_of(*first->second)),
                   "every scan walks everything and is partial: their marks can't be told apart",
                   "stop one of them; or set another node.name there, then: systemctl restart spoord");
  }
}

void check_rules(const Facts& facts, Findings& findings) {
  constexpr const char* why = "every scan walks everything: a node does not record the paths that it ignores";
  if (facts.own_daemon_rules && *facts.own_daemon_rules != facts.own_rules_digest) {
    findings.error("the daemon runs with other namespace rules than the configuration", why,
                   "systemctl restart spoord");
  }
  for (const PeerFacts& peer : others(facts)) {
    if (!reads_others(facts) || !peer.rules_digest || *peer.rules_digest == facts.own_rules_digest) continue;
    findings.error(
        fmt::format("{} has other namespace rules than this node", name_of(peer)), why,
        fmt::format("make \"namespace\" in {} the same on all nodes, then: systemctl restart spoord",
                    shell_quoted(facts.config_file)));
  }
}

void check_versions(const Facts& facts, Findings& findings) {
  const auto own = facts.daemon.status.body.at("version").get<std::string>();
  for (const PeerFacts& peer : others(facts)) {
    if (peer.version.empty() || peer.version == own) continue;
    findings.warning(fmt::format("{} runs version {}, and this node {}", name_of(peer),
                                 base::printable(peer.version), own),
                     "nodes whose formats differ can't read each other's marks",
                     "upgrade the older node, see \"Upgrading\" in "
                     "/usr/share/doc/spoor/docs/operations.md, then: "
                     "systemctl restart spoord");
  }
}

constexpr Check checks_of_cluster[] = {
    {"clock", false, check_clock}, {"peers", false, check_peers}, {"members", false, check_members},
    {"names", false, check_names}, {"rules", false, check_rules}, {"versions", true, check_versions},
};

}  // namespace

std::span<const Check> cluster_checks() { return checks_of_cluster; }

}  // namespace spoor::cli
