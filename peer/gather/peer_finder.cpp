#include "peer/gather/peer_finder.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "peer/gather/cycle_exchange.h"
#include "peer/http/certificate_names.h"

namespace spoor::peer {

using tracker::CycleId;

PeerFinder::PeerFinder(const tracker::Cursors& known, const GatherOptions& options, Gathered& gathered)
    : known_(known), options_(options), gathered_(gathered), endpoints_(options.members.endpoints) {
  for (const base::Endpoint& endpoint : endpoints_) urls_.insert(endpoint.to_string());
  first_departed_ = endpoints_.size();
  for (const base::Endpoint& endpoint : options.members.departed) {
    if (urls_.insert(endpoint.to_string()).second) endpoints_.push_back(endpoint);
  }
}

std::optional<std::string> PeerFinder::node_at(const std::string& url) const {
  const auto found = names_.find(url);
  return found == names_.end() ? std::nullopt : std::optional(found->second);
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
    gathered_.addresses[url] = AddressState::silent;
    silent_.push_back({index, frame.error().message});
    return;
  }
  gathered_.addresses[url] = AddressState::answered;
  names_[url] = frame->sender.node;
  const bool is_proven = response->is_own_authority && is_own_credential(response->certificate_names);
  claims_.push_back({{url, frame->sender.node, frame->answer.instance, frame->run, is_proven},
                     index,
                     endpoint,
                     frame->answer.current,
                     frame->answer.current_age});
}

void PeerFinder::decide() {
  apply_verdicts();
  resolve_silent();
  miss_expected();
  drop_duplicate_names();
  drop_out_of_reach();
}

// Which claims are accepted.
void PeerFinder::apply_verdicts() {
  std::ranges::sort(claims_, {}, &FoundPeer::index);
  const std::vector<NameClaim> claims(claims_.begin(), claims_.end());
  const ClaimContext context{known_, options_.own_name, options_.own_url, listed_homes(), listed_silent()};
  const auto judged = judge_claims(claims, context);
  for (std::size_t at = 0; at < claims_.size(); ++at) apply_verdict(claims_[at], judged[at]);
}

std::map<std::string, std::set<std::string>> PeerFinder::listed_homes() const {
  std::map<std::string, std::set<std::string>> homes;
  for (const ExpectedPeer& expected : options_.members.expected) {
    homes[expected.name].insert(expected.endpoint.to_string());
  }
  return homes;
}

std::set<std::string> PeerFinder::listed_silent() const {
  std::set<std::string> urls;
  for (const Silent& each : silent_) {
    if (each.index < first_departed_) urls.insert(endpoints_[each.index].to_string());
  }
  return urls;
}

void PeerFinder::apply_verdict(const FoundPeer& claim, const JudgedClaim& judged) {
  if (judged.verdict == Verdict::disputed) {
    gathered_.addresses[claim.url] = AddressState::silent;
    report(claim.name, claim.url, judged.why);
    remember_disputed(claim);
    disputed_.push_back(claim);
    return;
  }
  if (!judged.warning.empty()) gathered_.warnings.push_back(judged.warning);
  if (claim.url != options_.own_url) take_address(claim);
  if (judged.verdict != Verdict::second) found_.push_back(claim);
}

// The marks of a disputed claim are merged, but count as unread: if the address leaves, they are a gap,
// whatever instance it reports.
void PeerFinder::remember_disputed(const FoundPeer& claim) {
  if (claim.url == options_.own_url) return;
  gathered_.cursors.try_emplace(claim.url, tracker::Cursor{claim.instance, {}}).first->second.cycle =
      unknown_since;
}

// The endpoints that did not respond.
void PeerFinder::resolve_silent() {
  for (const auto& [index, error] : silent_) {
    const std::string url = endpoints_[index].to_string();
    const bool has_moved = is_among(found_, url);
    if (index >= first_departed_ && has_moved) {
      resolve_departed(url);
      continue;
    }
    report(url, url, error);
    if (url == options_.own_url) continue;
    remember_silent(url);
    if (has_moved || is_among(disputed_, url)) gathered_.cursors[url].cycle = unknown_since;
  }
}

// Reports expected peers that were not found.
void PeerFinder::miss_expected() {
  std::set<std::pair<std::string, tracker::InstanceId>> missed;
  for (const ExpectedPeer& expected : options_.members.expected) {
    const std::string url = expected.endpoint.to_string();
    const auto answered = names_.find(url);
    // A peer with a new instance needs no report here: its response is a gap.
    const bool is_there =
        is_found(expected) || (answered != names_.end() && answered->second == expected.name);
    if (is_there || !missed.emplace(expected.name, expected.instance).second) continue;
    if (!has_duplicate_name(expected))
      gathered_.cursors.try_emplace(expected.name, tracker::Cursor{{}, unknown_since});
    const auto state = gathered_.addresses.find(url);
    const bool is_reported = state != gathered_.addresses.end() && state->second == AddressState::silent;
    if (!is_reported) report(expected.name, url, "it does not respond under its own name");
  }
}

bool PeerFinder::is_found(const ExpectedPeer& expected) const {
  return std::ranges::any_of(found_, [&](const FoundPeer& peer) {
    return peer.name == expected.name && (expected.instance.is_none() || peer.instance == expected.instance);
  });
}

bool PeerFinder::has_duplicate_name(const ExpectedPeer& expected) const {
  return !is_found(expected) && std::ranges::find(found_, expected.name, &FoundPeer::name) != found_.end();
}

// If a source of members knows the instance at the address, stores that instance: the tracker has a cursor
// under its name. Otherwise, or if another tracker has the name now, the address counts as unread.
void PeerFinder::remember_silent(const std::string& url) {
  const ExpectedPeer* known = nullptr;
  for (const ExpectedPeer& expected : options_.members.expected) {
    if (expected.endpoint.to_string() != url) continue;
    if (expected.instance.is_none() || has_duplicate_name(expected)) return remember_unread(url);
    known = &expected;
  }
  if (known == nullptr) return remember_unread(url);
  gathered_.cursors.try_emplace(url, tracker::Cursor{known->instance, {}});
}

bool PeerFinder::is_among(const std::vector<FoundPeer>& peers, const std::string& url) const {
  const auto last = known_.find(url);
  return last != known_.end() && !last->second.instance.is_none() &&
         std::ranges::find(peers, last->second.instance, &FoundPeer::instance) != peers.end();
}

// The address is departed, and its tracker is found elsewhere. If another tracker was there since, it was
// never read: a gap.
void PeerFinder::resolve_departed(const std::string& url) {
  gathered_.addresses[url] = AddressState::left;
  CycleId& state = gathered_.cursors[url].cycle;
  if (state == unknown_since) gathered_.gaps.push_back(fmt::format("'{}' was left before it answered", url));
  state = {};
}

// A peer that was never read may have acknowledged marks: they are a gap when it leaves. It is stored as a
// cursor without an instance, under its name, or under its URL while the name is not known.
void PeerFinder::remember_unread(const std::string& name_or_url) {
  gathered_.cursors.try_emplace(name_or_url);
}

// Stores the instance that responds at the address. If the address never responded before, another node may
// have had it until now, with marks that were never read.
void PeerFinder::take_address(const FoundPeer& peer) {
  const auto before = known_.find(peer.url);
  const bool is_unread = before != known_.end() &&
                         (before->second.instance.is_none() || (before->second.cycle == unknown_since &&
                                                                before->second.instance != peer.instance));
  if (is_unread) gathered_.gaps.push_back(fmt::format("'{}' never answered before", peer.url));
  gathered_.cursors[peer.url] = {peer.instance, {}};
}

// A cursor can't distinguish two running trackers under one name: a gap, in every scan, until one of them
// is gone or renamed; and once more after that, for the marks that are gone with it.
void PeerFinder::drop_duplicate_names() {
  std::map<std::string, int> count;
  for (const FoundPeer& peer : found_) ++count[peer.name];
  for (const auto& [name, instances] : count) {
    if (instances == 1) continue;
    gathered_.gaps.push_back(fmt::format(
        "{} living trackers call themselves '{}'; give each node a name of its own", instances, name));
  }
  std::erase_if(found_, [&](const FoundPeer& peer) {
    const bool is_duplicate = count[peer.name] > 1;
    if (!is_duplicate) return false;
    report(peer.name, peer.url, "another living tracker has the same name");
    gathered_.cursors[peer.name] = {peer.instance, {}};  // cycle 0: the next read is a gap
    return true;
  });
}

// A peer that reports a cycle out of reach of all others is wrong: no other tracker could advance to it
// (docs/cluster.md).
void PeerFinder::drop_out_of_reach() {
  while (!found_.empty()) {
    const auto ahead = std::ranges::max_element(found_, {}, &FoundPeer::current);
    const CycleId reached = highest_of_others(*ahead);
    if (reached == CycleId{} || ahead->current <= tracker::reach_of(reached)) return;
    report(ahead->name, ahead->url,
           fmt::format("it claims to be in cycle {}, where no other is beyond {}; see \"Cycle numbers out of "
                       "reach\" in docs/cluster.md",
                       ahead->current.value, reached.value));
    remember_unread(ahead->name);
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
  for (const auto& [name, cursor] : known_) {
    const bool is_name = name.find(':') == std::string::npos;
    if (is_name && name != peer.name && !cursor.instance.is_none()) highest = std::max(highest, cursor.cycle);
  }
  return highest;
}

void PeerFinder::report(const std::string& name, const std::string& url, const std::string& error) {
  gathered_.peers.push_back({name, url, false, error});
}

}  // namespace spoor::peer
