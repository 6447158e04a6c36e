#include "peer/gather/peer_finder.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/printable.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/http/certificate_names.h"

namespace spoor::peer {

using tracker::CycleId;
using tracker::PeerId;
using tracker::Standing;

// What is known of a name that trackers claim.
struct PeerFinder::Name {
  std::string text;
  bool is_read = false;
  std::set<std::string> homes = {};   // addresses where it was found before
  std::set<std::string> listed = {};  // addresses at which a source of members lists it
};

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
  const std::string url = endpoint.to_string();
  const auto frame = read_member_frame(response, options_.cluster);
  if (!frame) {
    const bool is_listed = listed_.contains(url);
    const bool is_alive = is_listed && !options_.members.not_alive.contains(url);
    const bool refuses = response && (response->status == 401 || response->status == 403);
    silent_.push_back({index, url, is_listed, is_alive, frame.error().message, refuses});
    return;
  }
  const bool is_proven = response->is_own_authority && is_own_credential(response->certificate_names);
  claims_.push_back({url, frame->sender.node, frame->answer.instance, frame->run, is_proven, index, endpoint,
                     frame->answer.current, frame->answer.current_age});
}

void PeerFinder::decide() {
  std::ranges::sort(silent_, {}, &Silent::index);
  std::ranges::sort(claims_, {}, &FoundPeer::index);
  std::map<std::string, std::vector<FoundPeer>> by_name;
  for (FoundPeer& claim : claims_) by_name[claim.name].push_back(std::move(claim));
  for (auto& [name, claims] : by_name) judge(name_of(name), std::move(claims));
  std::ranges::sort(found_, {}, &FoundPeer::index);
  std::ranges::sort(disputed_, {}, &FoundPeer::index);
  drop_copies();
  drop_out_of_reach();
}

PeerFinder::Name PeerFinder::name_of(const std::string& text) const {
  Name name{text};
  if (text == options_.own_name) name.homes.insert(options_.own_url);
  const bool is_own = !name.homes.empty();
  for (const auto& [id, peer] : known_) {
    if (id.name != text || !peer.is_expected() || peer.cycle == CycleId()) continue;
    name.is_read = true;
    if (!peer.home.empty()) name.homes.insert(peer.home);
  }
  const auto listed = options_.members.listed_homes.find(text);
  if (listed != options_.members.listed_homes.end()) name.listed = listed->second;
  if (!name.is_read && !is_own) name.homes = name.listed;
  return name;
}

// Which claims of a name are accepted.
void PeerFinder::judge(const Name& name, std::vector<FoundPeer> claims) {
  enum class Rank { own, proven, home, listed, elsewhere };
  const auto rank = [&](const FoundPeer& claim) {
    if (name.text == options_.own_name && claim.url == options_.own_url) return Rank::own;
    if (claim.is_proven) return Rank::proven;
    if (name.homes.contains(claim.url)) return Rank::home;
    return name.listed.contains(claim.url) ? Rank::listed : Rank::elsewhere;
  };
  // By trust: a claim that a certificate proves precedes one from a home, where any host may respond. The
  // node's own daemon comes first: its instance is checked too.
  std::ranges::sort(claims, {}, [&](const FoundPeer& claim) { return std::pair(rank(claim), claim.index); });
  const Rank first = rank(claims.front());
  if (first >= Rank::listed) {
    if (dispute(name, claims, first == Rank::listed)) return;
    if (!name.homes.empty()) {
      gathered_.warnings.push_back(fmt::format("node '{}' was last found at {}, and is now at {}",
                                               base::printable(name.text), fmt::join(name.homes, ", "),
                                               claims[0].url));
    } else if (!name.is_read && claims.size() > 1) {
      gathered_.warnings.push_back(fmt::format(
          "node '{}', read for the first time, answers at {} and at {}: from now on it is read at {}; if "
          "that is not the node, remove it from the members and run `spoor scan --full`",
          base::printable(name.text), claims[0].url, claims[1].url, claims[0].url));
    }
  }
  // A tracker at several addresses is read at the first.
  for (FoundPeer& claim : claims) {
    const auto is_same = [&](const FoundPeer& other) {
      return other.id() == claim.id() && other.run == claim.run;
    };
    if (std::ranges::none_of(found_, is_same)) found_.push_back(std::move(claim));
  }
}

// Disputes all claims, and returns true, if an address where the name was found before, or is listed, does
// not respond.
bool PeerFinder::dispute(const Name& name, const std::vector<FoundPeer>& claims, bool is_one_listed) {
  std::set<std::string> homes = name.homes;
  if (!is_one_listed) homes.insert(name.listed.begin(), name.listed.end());
  const auto home = std::ranges::find_if(homes, [&](const std::string& url) {
    const auto silent = std::ranges::find(silent_, url, &Silent::url);
    return silent != silent_.end() && silent->is_listed && (silent->is_alive || !is_one_listed);
  });
  if (home == homes.end()) return false;
  for (const FoundPeer& claim : claims) {
    gathered_.peers.push_back(
        {claim.name, claim.url, false,
         fmt::format("node '{}' {} at {}, which does not respond; {} claims its name without a certificate "
                     "for it. If the node moved, remove {} from the members; else give the other node a name "
                     "of its own",
                     base::printable(name.text), name.homes.contains(*home) ? "was last found" : "is listed",
                     *home, claim.url, *home)});
    disputed_.push_back(claim);
  }
  return true;
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
  // Of any other peer, now or when it was read last. The earlier reports of this peer do not count.
  const auto highest_of_others = [&](const FoundPeer& peer) {
    CycleId highest;
    for (const FoundPeer& other : found_) {
      if (other.name != peer.name) highest = std::max(highest, other.current);
    }
    for (const auto& [id, known] : known_) {
      if (id.name != peer.name) highest = std::max(highest, known.cycle);
    }
    return highest;
  };
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

}  // namespace spoor::peer
