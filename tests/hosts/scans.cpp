#include "tests/hosts/scans.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <optional>
#include <sstream>
#include <utility>

namespace spoor::hosts {
namespace {

using nlohmann::json;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::optional<std::size_t> host_at(const Hosts& hosts, const std::string& url) {
  for (const auto& host : hosts) {
    if (url == host->url() || url == host->socket_url()) return host->index();
  }
  return std::nullopt;
}

}  // namespace

Scans::Scans(const Hosts& hosts, Knowledge& knowledge, const Reachability& reachability, Ledger& ledger)
    : hosts_(hosts), knowledge_(knowledge), reachability_(reachability), ledger_(ledger) {}

void Scans::work(support::Random random) {
  try {
    while (!stopping_ && !ledger_.is_violated()) scan(*random.pick(hosts_));
  } catch (const std::exception& error) {
    ledger_.violated(std::string("a scanner ended: ") + error.what());
  }
}

bool Scans::scan(Host& host) {
  const std::scoped_lock still(host.still());
  Ended ended{host, {}, knowledge_.begin(host.index()), reachability_.from(host.index()), {}, {}, {}};
  ended.result = host.spoor({"scan", "--json"});
  ended.after = reachability_.from(host.index());
  const bool complete = judge(ended);
  ledger_.scan_ended();
  return complete;
}

bool Scans::judge(Ended& ended) {
  const int code = ended.result.code;
  if (code == exit_failed) {
    judge_failure(ended);
    return false;
  }
  ended.report = json::parse(ended.result.out, nullptr, false);
  if ((code != exit_done && code != exit_in_part) || !ended.report.is_object()) {
    violated(ended, "it ended with " + std::to_string(code));
    return false;
  }
  if (!read_peers(ended)) return false;
  note(ended);
  const bool complete =
      !ended.has_met_former && std::all_of(ended.answered.begin(), ended.answered.end(), std::identity());
  const json& report = ended.report;
  if (report["errors"] != 0) violated(ended, "directories could not be read");
  if (report["partial"] != !complete) violated(ended, "'partial' does not match its peers");
  if ((code == exit_done) != complete) violated(ended, "its exit code does not match its peers");
  const auto expected = knowledge_.expect(ended.reading, ended.answered);
  judge_mode(ended, expected);
  const bool full = report["mode"] == "full";
  if (complete || full || expected.has_all_marks) judge_totals(ended);
  knowledge_.finish(ended.reading, ended.answered, full);
  return complete;
}

// A scan may fail only if the daemon of its host did not respond.
void Scans::judge_failure(const Ended& ended) {
  ledger_.count("scans without a daemon");
  ledger_.note(ended.host.name() + " scanned: failed, " + ended.result.err);
  if (!contains(ended.result.err, "the marks were not gathered")) return violated(ended, "it failed");
  if (Reachability::throughout(ended.before, ended.after, ended.host.index()) == Reach::yes)
    violated(ended, "it failed though its daemon was running");
}

// Returns false if the report does not list each address exactly once.
bool Scans::read_peers(Ended& ended) {
  std::vector<bool> reported(hosts_.size());
  std::vector<std::string> met;
  ended.answered.assign(hosts_.size(), false);
  for (const json& peer : ended.report["peers"]) {
    // Others have met it, this scanner has not: beside the address that is silent.
    if (peer["url"] == "" && peer["ok"] == false) {
      met.push_back(peer["name"]);
      continue;
    }
    const auto index = host_at(hosts_, peer["url"]);
    if (!index || reported[*index]) {
      violated(ended, "it lists an unknown peer, or a peer twice");
      return false;
    }
    reported[*index] = true;
    ended.answered[*index] = peer["ok"];
    judge_peer(ended, peer, *index);
  }
  for (const std::string& name : met) {
    const auto host = std::ranges::find(hosts_, name, [](const auto& known) { return known->name(); });
    const bool is_former =
        host != hosts_.end() && knowledge_.may_meet_former(ended.host.index(), (*host)->index());
    ended.has_met_former = ended.has_met_former || is_former;
    if (is_former || (host != hosts_.end() && !ended.answered[(*host)->index()])) continue;
    violated(ended, "it has met '" + name + "', which responded or does not exist");
    return false;
  }
  const bool all_reported = std::all_of(reported.begin(), reported.end(), std::identity());
  if (!all_reported) violated(ended, "it does not list every peer");
  return all_reported;
}

void Scans::judge_peer(const Ended& ended, const json& peer, std::size_t index) {
  const Reach reach = Reachability::throughout(ended.before, ended.after, index);
  const bool ok = peer["ok"];
  if (ok && reach == Reach::no) {
    violated(ended, hosts_[index]->name() + " is reported as responding, but was not reachable");
  }
  if (ok || reach != Reach::yes) return;
  if (contains(peer["error"], too_slow)) {
    ledger_.count("responses too late");
  } else {
    violated(ended, hosts_[index]->name() + " was reachable, but is reported as not responding");
  }
}

void Scans::judge_mode(const Ended& ended, const Knowledge::Expected& expected) {
  const bool full = ended.report["mode"] == "full";
  if (expected.is_full && !full) violated(ended, "something was lost, and it did not walk everything");
  if (!full || expected.first) return;
  if (ended.report["gaps"].empty()) violated(ended, "it walked everything, and reports no gap");
  for (const json& gap : ended.report["gaps"]) judge_gap(ended, gap, expected);
}

void Scans::judge_gap(const Ended& ended, const std::string& gap, const Knowledge::Expected& expected) {
  for (const auto& host : hosts_) {
    const bool is_meant = contains(gap, "'" + host->name() + "'") || contains(gap, "'" + host->url() + "'");
    if (is_meant && expected.may_be_a_gap[host->index()]) return;
  }
  violated(ended, "it walked everything though nothing was lost");
}

void Scans::judge_totals(const Ended& ended) {
  const auto stored = ended.host.stored_totals();
  const auto truth = ended.host.true_totals();
  ledger_.count("totals compared");
  if (stored == truth) return;
  std::ostringstream what;
  what << "a change was missed: " << stored << " in its database, " << truth << " on its drives";
  violated(ended, what.str());
}

void Scans::note(const Ended& ended) {
  const json& report = ended.report;
  std::string text = ended.host.name() + " scanned: cycle " + report["cycle"].dump() + ", " +
                     report["mode"].get<std::string>() + ", walked " + report["dirs_walked"].dump() +
                     ", skipped " + report["dirs_skipped"].dump();
  for (const json& peer : report["peers"]) {
    if (!peer["ok"]) text += "; " + peer["url"].get<std::string>() + ": " + peer["error"].get<std::string>();
  }
  for (const json& gap : report["gaps"]) text += "; gap: " + gap.get<std::string>();
  ledger_.note(text);
  ledger_.count(ended.result.code == exit_done ? "complete scans" : "partial scans");
  ledger_.count("scans that were " + report["mode"].get<std::string>());
  ledger_.count("directories walked", report["dirs_walked"]);
  ledger_.count("directories skipped", report["dirs_skipped"]);
}

void Scans::violated(const Ended& ended, const std::string& what) {
  ledger_.violated("the scan of " + ended.host.name() + ": " + what + "\n" + ended.result.out +
                   ended.result.err);
}

}  // namespace spoor::hosts
