#include "peer/gather/peer_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <utility>

#include "peer/gather/cycle_exchange.h"
#include "peer/http/certificate_names.h"

namespace spoor::peer {

using tracker::CycleId;
using tracker::PeerId;
using tracker::Standing;

PeerFinder::PeerFinder(const tracker::PeerBook& known, const GatherOptions& options, Gathered& gathered)
    : known_(known), options_(options), gathered_(gathered), endpoints_(options.members.endpoints) {
  for (const base::Endpoint& endpoint : endpoints_) listed_.insert(endpoint.to_string());
  std::set<std::string> urls = listed_;
  for (const auto& [id, peer] : known_) {
    if (options_.own_only || !peer.is_expected() || peer.home.empty() || !urls.insert(peer.home).second)
      continue;
    if (auto endpoint = base::parse_endpoint(peer.home)) endpoints_.push_back(*std::move(endpoint));
  }
}

std::vector<HttpRequest> PeerFinder::requests() const {
  std::vector<HttpRequest> requests;
  requests.reserve(endpoints_.size());
  for (const base::Endpoint& endpoint : endpoints_) {
    requests.push_back(probe_request(endpoint, options_.cluster));
  }
  return requests;
}

void PeerFinder::take(std::size_t index, const base::Result<HttpResponse>& response) {
  const base::Endpoint& endpoint = endpoints_[index];
  const auto frame = read_member_frame(response, options_.cluster);
  const std::string url = endpoint.to_string();
  if (!frame) {
    const bool is_alive = is_listed(url) && !options_.members.not_alive.contains(url);
    silent_.push_back(
        {index, url, is_listed(url), is_alive, frame.error().message, refuses_credentials(response)});
    return;
  }
  const bool is_proven = response->is_own_authority && is_own_credential(response->certificate_names);
  claims_.push_back({{url, frame->sender.node, frame->answer.instance, frame->run, is_proven},
                     index,
                     endpoint,
                     frame->answer.current,
                     frame->answer.current_age});
}

void PeerFinder::decide() {
  std::ranges::sort(silent_, {}, &Silent::index);
  std::ranges::sort(claims_, {}, &FoundPeer::index);
  apply_verdicts();
  drop_copies();
  drop_out_of_reach();
}

// Which claims are accepted.
void PeerFinder::apply_verdicts() {
  const std::vector<NameClaim> claims(claims_.begin(), claims_.end());
  ClaimContext context{known_, options_.own_name,         options_.own_url, options_.members.listed_homes,
                       {},     options_.members.not_alive};
  for (const Silent& each : silent_) {
    if (each.is_listed) context.silent.insert(each.url);
  }
  const auto judged = judge_claims(claims, context);
  for (std::size_t at = 0; at < claims_.size(); ++at) apply_verdict(claims_[at], judged[at]);
}

void PeerFinder::apply_verdict(const FoundPeer& claim, const JudgedClaim& judged) {
  if (judged.verdict == Verdict::disputed) {
    gathered_.peers.push_back({claim.name, claim.url, false, judged.why});
    disputed_.push_back(claim);
    return;
  }
  if (!judged.warning.empty()) gathered_.warnings.push_back(judged.warning);
  if (judged.verdict != Verdict::second) found_.push_back(claim);
}

// Two running trackers with one memory, of a copied data directory: a cursor can't distinguish them. A gap,
// in every scan, until one of them is gone; and once more after that, for the marks that are gone with it.
void PeerFinder::drop_copies() {
  std::map<PeerId, int> count;
  for (const FoundPeer& peer : found_) ++count[peer.id()];
  for (const auto& [id, trackers] : count) {
    if (trackers == 1) continue;
    gathered_.gaps.push_back(fmt::format(
        "{} running trackers call themselves '{}' and have one instance: one of them uses a copy of the "
        "other's data; stop it, remove its node.data_dir, and give it a name of its own",
        trackers, id.name));
    gathered_.book[id].standing = Standing::copied;
    refused_.insert(id);
  }
  std::erase_if(found_, [&](const FoundPeer& peer) {
    const bool is_copy = count[peer.id()] > 1;
    if (is_copy)
      gathered_.peers.push_back(
          {peer.name, peer.url, false, "another running tracker has the same name and instance"});
    return is_copy;
  });
}

// A peer that reports a cycle out of reach of all others is wrong: no other tracker could advance to it
// (/usr/share/doc/spoor/docs/cluster.md).
void PeerFinder::drop_out_of_reach() {
  while (!found_.empty()) {
    const auto ahead = std::ranges::max_element(found_, {}, &FoundPeer::current);
    const CycleId reached = highest_of_others(*ahead);
    if (reached == CycleId{} || ahead->current <= tracker::reach_of(reached)) return;
    gathered_.peers.push_back(
        {ahead->name, ahead->url, false,
         fmt::format("it claims to be in cycle {}, where no other is beyond {}; see \"A cycle number out "
                     "of reach\" in /usr/share/doc/spoor/docs/troubleshooting.md",
                     ahead->current.value, reached.value)});
    gathered_.book.try_emplace(ahead->id());
    refused_.insert(ahead->id());
    found_.erase(ahead);
  }
}

// The highest cycle of any other peer, now or when it was read last. The earlier reports of this peer do
// not count.
CycleId PeerFinder::highest_of_others(const FoundPeer& peer) const {
  CycleId highest;
  for (const FoundPeer& other : found_) {
    if (other.name != peer.name) highest = std::max(highest, other.current);
  }
  for (const auto& [id, known] : known_) {
    if (id.name != peer.name) highest = std::max(highest, known.cycle);
  }
  return highest;
}

}  // namespace spoor::peer
