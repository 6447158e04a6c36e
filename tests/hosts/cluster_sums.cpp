#include "tests/hosts/cluster_sums.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <functional>
#include <mutex>
#include <sstream>

namespace spoor::hosts {
namespace {

using nlohmann::json;
using support::TreeTotals;

constexpr int exit_done = 0;
constexpr int exit_in_part = 3;

// A reachable peer may still be slow; the test does not judge response times.
constexpr const char* too_slow = "no answer in time";

TreeTotals operator+(const TreeTotals& one, const TreeTotals& other) {
  return {one.files + other.files, one.dirs + other.dirs, one.bytes + other.bytes};
}

}  // namespace

void ClusterSums::work(support::Random random) {
  constexpr std::uint64_t scans_between = 3;
  constexpr int asked_at_once = 3;
  try {
    while (!stopping_ && !ledger_.is_violated()) {
      const auto soon = std::chrono::steady_clock::now() + std::chrono::seconds(1);
      if (!ledger_.wait_for_scans(scans_between, soon)) continue;
      // In this order by this thread alone; any other holds one of them at a time.
      std::vector<std::unique_lock<std::mutex>> still;
      for (const auto& host : hosts_) still.emplace_back(host->still());
      for (int i = 0; i < asked_at_once; ++i) {
        Answer answer = ask(*random.pick(hosts_));
        judge(answer);
      }
    }
  } catch (const std::exception& error) {
    ledger_.violated(std::string("the sums of the cluster ended: ") + error.what());
  }
}

void ClusterSums::check_all() {
  TreeTotals truth;
  for (const auto& host : hosts_) truth = truth + host->true_totals();
  for (const auto& host : hosts_) {
    Answer answer = ask(*host);
    judge(answer);
    if (ledger_.is_violated()) return;
    const bool is_all = std::ranges::all_of(answer.added, std::identity());
    const json& report = answer.report;
    if (is_all && TreeTotals{report["files"], report["dirs"], report["bytes"]} != truth)
      violated(answer, "they are not those of all drives");
    if (is_all) ledger_.count("sums of all drives compared");
  }
}

ClusterSums::Answer ClusterSums::ask(const Host& host) {
  Answer answer{host, {}, {}, reachability_.from(host.index()), {}, {}};
  answer.result = host.spoor({"usage", "--cluster", "--json"});
  answer.after = reachability_.from(host.index());
  answer.report = json::parse(answer.result.out, nullptr, false);
  return answer;
}

void ClusterSums::judge(Answer& answer) {
  const int code = answer.result.code;
  if ((code != exit_done && code != exit_in_part) || !answer.report.is_object()) {
    const bool was_there =
        Reachability::throughout(answer.before, answer.after, answer.asked.index()) == Reach::yes;
    if (was_there) return violated(answer, "they ended with " + std::to_string(code));
    ledger_.count("sums of a host that was down");
    return;
  }
  if (!read_nodes(answer)) return;
  const bool is_all = std::ranges::all_of(answer.added, std::identity());
  if ((code == exit_done) != is_all) violated(answer, "the exit code does not match the nodes");
  const bool is_complete = std::ranges::all_of(answer.report["nodes"],
                                               [](const json& node) { return node["complete"].get<bool>(); });
  if (answer.report["complete"] != is_complete) violated(answer, "'complete' does not match the nodes");
  TreeTotals stored;
  for (const auto& host : hosts_) {
    if (answer.added[host->index()]) stored = stored + host->stored_totals();
  }
  const TreeTotals sums{answer.report["files"], answer.report["dirs"], answer.report["bytes"]};
  // A host that does not respond counts with what it reported last: its directories are part of the sums
  // alone.
  for (const json& node : answer.report["nodes"]) {
    if (!node["last_known"].get<bool>()) continue;
    stored = {stored.files + node["files"].get<std::uint64_t>(), sums.dirs,
              stored.bytes + node["bytes"].get<std::uint64_t>()};
    ledger_.count("hosts in sums as they were");
  }
  std::ostringstream text;
  text << answer.asked.name() << " sums up " << std::ranges::count(answer.added, true) << " hosts: " << sums;
  ledger_.note(text.str());
  ledger_.count(is_all ? "sums of all hosts" : "sums of some hosts");
  text << ", and they have stored " << stored;
  if (sums != stored) violated(answer, text.str());
}

// Returns false if the report does not list each host exactly once.
bool ClusterSums::read_nodes(Answer& answer) {
  std::vector<bool> listed(hosts_.size());
  answer.added.assign(hosts_.size(), false);
  for (const json& node : answer.report["nodes"]) {
    const auto is_meant = [&](const auto& host) {
      return node["url"].is_null() ? host.get() == &answer.asked : node["url"] == host->url();
    };
    const auto host = std::ranges::find_if(hosts_, is_meant);
    if (host == hosts_.end() || listed[(*host)->index()]) {
      violated(answer, "they list an unknown node, or a node twice");
      return false;
    }
    listed[(*host)->index()] = true;
    answer.added[(*host)->index()] = node["ok"];
    judge_node(answer, node, **host);
  }
  const bool is_each_listed = std::ranges::all_of(listed, std::identity());
  if (!is_each_listed) violated(answer, "they do not list every node");
  return is_each_listed;
}

void ClusterSums::judge_node(const Answer& answer, const json& node, const Host& host) {
  const bool is_own = &host == &answer.asked;
  const Reach reach =
      is_own ? Reach::yes : Reachability::throughout(answer.before, answer.after, host.index());
  const bool ok = node["ok"];
  if (ok && node["name"] != host.name()) violated(answer, host.name() + " has another name");
  if (ok && reach == Reach::no) violated(answer, host.name() + " was not reachable, and is added");
  if (ok && !host.has_scan()) violated(answer, host.name() + " has no scan, and is added");
  if (ok || reach != Reach::yes || !host.has_scan()) return;
  if (node["error"].get<std::string>().find(too_slow) != std::string::npos) {
    ledger_.count("totals too late");
  } else {
    violated(answer, host.name() + " was reachable, and is missing");
  }
}

void ClusterSums::violated(const Answer& answer, const std::string& what) {
  ledger_.violated("the sums of the cluster from " + answer.asked.name() + ": " + what + "\n" +
                   answer.result.out + answer.result.err);
}

}  // namespace spoor::hosts
