#include "peer/gather/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/printable.h"
#include "peer/gather/cycle_frame.h"
#include "peer/gather/cycle_request.h"
#include "peer/gather/name_claims.h"
#include "peer/http/certificate_names.h"

namespace spoor::peer {
namespace {

using tracker::CycleId;

// Over this density, the number of bits set is no useful estimate of the number of items.
constexpr double countable_density_max = 0.95;

// A running tracker, from its response in the first round.
struct Found : NameClaim {
  std::size_t index = 0;  // of its endpoint
  base::Endpoint endpoint;
  CycleId current;
  std::chrono::milliseconds age{};
};

base::Result<CycleFrame> read_frame(const base::Result<HttpResponse>& response, const std::string& cluster) {
  if (!response) return response.error();
  if (!response->is_success()) {
    return base::Error(std::make_error_code(std::errc::protocol_error), problem_detail(*response));
  }
  auto frame = decode_cycle_frame(response->body);
  if (frame && frame->sender.cluster != cluster) {
    return base::Error(
        std::make_error_code(std::errc::protocol_error),
        fmt::format("it belongs to cluster '{}', not to '{}'", frame->sender.cluster, cluster));
  }
  if (!frame) return frame;
  if (auto checked = check_issued_for(response->certificate_names, frame->sender.node); !checked)
    return checked.error();
  return frame;
}

}  // namespace

class Gathering::State {
 public:
  State(const tracker::Cursors& cursors, GatherOptions options)
      : known_(cursors), options_(std::move(options)), endpoints_(options_.members.endpoints) {
    for (const base::Endpoint& endpoint : endpoints_) urls_.insert(endpoint.to_string());
    first_departed_ = endpoints_.size();
    for (const base::Endpoint& endpoint : options_.members.departed) {
      if (urls_.insert(endpoint.to_string()).second) endpoints_.push_back(endpoint);
    }
    gathered_.cursors = cursors;
    gathered_.gaps = options_.members.gaps;
  }

  std::vector<HttpRequest> next_round() {
    switch (round_) {
      case Round::none:
        round_ = Round::find;
        return requests_to_find();
      case Round::find:
        round_ = Round::collect;
        apply_verdicts();
        resolve_silent();
        miss_expected();
        drop_duplicate_names();
        drop_out_of_reach();
        gathered_.cycle = common_cycle();
        return requests_to_collect();
      case Round::collect:
        round_ = Round::measure;
        return requests_to_measure();
      case Round::measure:
        break;
    }
    return {};
  }

  void take(std::size_t index, const base::Result<HttpResponse>& response) {
    if (round_ == Round::find) {
      take_found(index, response);
    } else if (round_ == Round::collect) {
      take_marks(index, response);
    } else {
      take_marks(too_large_[index], response);
    }
  }

  Gathered finish() {
    gathered_.unknown_sources = options_.members.unknown_sources;
    miss_own();
    forget_the_gone();
    gathered_.items = merged_items() + unmerged_items_;
    gathered_.marks.unpack();
    if (!gathered_.gaps.empty()) gathered_.marks.add_tree("");
    std::ranges::sort(gathered_.peers, {}, &PeerOutcome::name);
    return std::move(gathered_);
  }

 private:
  enum class Round { none, find, collect, measure };

  HttpRequest request_to(const base::Endpoint& endpoint, const tracker::CycleRequest& request) const {
    return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({options_.cluster, request})};
  }

  // Round 1: which trackers are at the endpoints, and in which cycle.
  std::vector<HttpRequest> requests_to_find() const {
    std::vector<HttpRequest> requests;
    requests.reserve(endpoints_.size());
    for (const base::Endpoint& endpoint : endpoints_) {
      requests.push_back(
          request_to(endpoint, {.current = {}, .oldest = {}, .instance = {}, .marks_wanted = false}));
    }
    return requests;
  }

  void take_found(std::size_t index, const base::Result<HttpResponse>& response) {
    const base::Endpoint& endpoint = endpoints_[index];
    const auto frame = read_frame(response, options_.cluster);
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

  // After all requests of the round have ended: decides which claims are accepted.
  void apply_verdicts() {
    std::ranges::sort(claims_, {}, &Found::index);
    const std::vector<NameClaim> claims(claims_.begin(), claims_.end());
    const ClaimContext context{known_, options_.own_name, options_.own_url, listed_homes(), listed_silent()};
    const auto judged = judge_claims(claims, context);
    for (std::size_t at = 0; at < claims_.size(); ++at) apply_verdict(claims_[at], judged[at]);
  }

  std::map<std::string, std::set<std::string>> listed_homes() const {
    std::map<std::string, std::set<std::string>> homes;
    for (const ExpectedPeer& expected : options_.members.expected) {
      homes[expected.name].insert(expected.endpoint.to_string());
    }
    return homes;
  }

  std::set<std::string> listed_silent() const {
    std::set<std::string> urls;
    for (const Silent& each : silent_) {
      if (each.index < first_departed_) urls.insert(endpoints_[each.index].to_string());
    }
    return urls;
  }

  void apply_verdict(const Found& claim, const JudgedClaim& judged) {
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
  void remember_disputed(const Found& claim) {
    if (claim.url == options_.own_url) return;
    gathered_.cursors.try_emplace(claim.url, tracker::Cursor{claim.instance, {}}).first->second.cycle =
        unknown_since;
  }

  // After apply_verdicts(): handles the endpoints that did not respond.
  void resolve_silent() {
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
  void miss_expected() {
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

  bool is_found(const ExpectedPeer& expected) const {
    return std::ranges::any_of(found_, [&](const Found& peer) {
      return peer.name == expected.name &&
             (expected.instance.is_none() || peer.instance == expected.instance);
    });
  }

  bool has_duplicate_name(const ExpectedPeer& expected) const {
    return !is_found(expected) && std::ranges::find(found_, expected.name, &Found::name) != found_.end();
  }

  // If a source of members knows the instance at the address, stores that instance: the tracker has a cursor
  // under its name. Otherwise, or if another tracker has the name now, the address counts as unread.
  void remember_silent(const std::string& url) {
    const ExpectedPeer* known = nullptr;
    for (const ExpectedPeer& expected : options_.members.expected) {
      if (expected.endpoint.to_string() != url) continue;
      if (expected.instance.is_none() || has_duplicate_name(expected)) return remember_unread(url);
      known = &expected;
    }
    if (known == nullptr) return remember_unread(url);
    gathered_.cursors.try_emplace(url, tracker::Cursor{known->instance, {}});
  }

  // Whether the tracker that responded at the URL last is one of `peers`, at another endpoint.
  bool is_among(const std::vector<Found>& peers, const std::string& url) const {
    const auto last = known_.find(url);
    return last != known_.end() && !last->second.instance.is_none() &&
           std::ranges::find(peers, last->second.instance, &Found::instance) != peers.end();
  }

  // The address is departed, and its tracker is found elsewhere. If another tracker was there since, it was
  // never read: a gap.
  void resolve_departed(const std::string& url) {
    gathered_.addresses[url] = AddressState::left;
    CycleId& state = gathered_.cursors[url].cycle;
    if (state == unknown_since)
      gathered_.gaps.push_back(fmt::format("'{}' was left before it answered", url));
    state = {};
  }

  // A peer that was never read may have acknowledged marks: they are a gap when it leaves. It is stored as a
  // cursor without an instance, under its name, or under its URL while the name is not known.
  void remember_unread(const std::string& name_or_url) { gathered_.cursors.try_emplace(name_or_url); }

  // Stores the instance that responds at the address. If the address never responded before, another node may
  // have had it until now, with marks that were never read.
  void take_address(const Found& peer) {
    const auto before = known_.find(peer.url);
    const bool is_unread = before != known_.end() &&
                           (before->second.instance.is_none() || (before->second.cycle == unknown_since &&
                                                                  before->second.instance != peer.instance));
    if (is_unread) gathered_.gaps.push_back(fmt::format("'{}' never answered before", peer.url));
    gathered_.cursors[peer.url] = {peer.instance, {}};
  }

  // A cursor can't distinguish two running trackers under one name: a gap, in every scan, until one of them
  // is gone or renamed; and once more after that, for the marks that are gone with it.
  void drop_duplicate_names() {
    std::map<std::string, int> count;
    for (const Found& peer : found_) ++count[peer.name];
    for (const auto& [name, instances] : count) {
      if (instances == 1) continue;
      gathered_.gaps.push_back(fmt::format(
          "{} living trackers call themselves '{}'; give each node a name of its own", instances, name));
    }
    std::erase_if(found_, [&](const Found& peer) {
      const bool is_duplicate = count[peer.name] > 1;
      if (!is_duplicate) return false;
      report(peer.name, peer.url, "another living tracker has the same name");
      gathered_.cursors[peer.name] = {peer.instance, {}};  // cycle 0: the next read is a gap
      return true;
    });
  }

  // A peer that reports a cycle out of reach of all others is wrong: no other tracker could advance to it
  // (docs/cluster.md).
  void drop_out_of_reach() {
    while (!found_.empty()) {
      const auto ahead = std::ranges::max_element(found_, {}, &Found::current);
      const CycleId reached = highest_of_others(*ahead);
      if (reached == CycleId{} || ahead->current <= tracker::reach_of(reached)) return;
      report(
          ahead->name, ahead->url,
          fmt::format("it claims to be in cycle {}, where no other is beyond {}; see \"Cycle numbers out of "
                      "reach\" in docs/cluster.md",
                      ahead->current.value, reached.value));
      remember_unread(ahead->name);
      found_.erase(ahead);
    }
  }

  // The highest cycle of any other peer, now or when it was read last. The earlier reports of this peer do
  // not count.
  CycleId highest_of_others(const Found& peer) const {
    CycleId highest;
    for (const Found& other : found_) {
      if (other.name != peer.name) highest = std::max(highest, other.current);
    }
    for (const auto& [name, cursor] : known_) {
      const bool is_name = name.find(':') == std::string::npos;
      if (is_name && name != peer.name && !cursor.instance.is_none())
        highest = std::max(highest, cursor.cycle);
    }
    return highest;
  }

  CycleId common_cycle() const {
    CycleId highest;
    if (found_.empty()) return highest;
    std::chrono::milliseconds age{};
    for (const Found& peer : found_) {
      if (peer.current < highest) continue;
      age = peer.current == highest ? std::max(age, peer.age) : peer.age;
      highest = peer.current;
    }
    const bool opens = options_.may_open_cycle && !options_.read_only && age >= options_.min_cycle_age;
    return opens ? std::min(next(highest), {CycleId::request_max}) : highest;
  }

  // Round 2: the marks of all peers, from this scanner's cursors up to the common cycle.
  std::vector<HttpRequest> requests_to_collect() const {
    std::vector<HttpRequest> requests;
    requests.reserve(found_.size() + disputed_.size());
    for (const Found& peer : found_) requests.push_back(request_to_collect(peer, true));
    for (const Found& peer : disputed_) requests.push_back(request_to_collect(peer, true));
    return requests;
  }

  HttpRequest request_to_collect(const Found& peer, bool marks_wanted) const {
    const auto known = known_.find(peer.name);
    const bool is_read = known != known_.end() && !known->second.instance.is_none();
    const tracker::Cursor cursor = is_read ? known->second : tracker::Cursor{};
    return request_to(peer.endpoint, {.current = cycle_to_open(peer),
                                      .oldest = cursor.cycle,
                                      .instance = cursor.instance,
                                      .marks_wanted = marks_wanted,
                                      .start_level = options_.read_only ? 0 : options_.start_level});
  }

  // Round 3: reads only the cycle of peers whose marks were too large. The gap makes this scan walk
  // everything, which covers their marks so far; the next scan reads their marks from this cycle on.
  std::vector<HttpRequest> requests_to_measure() const {
    std::vector<HttpRequest> requests;
    requests.reserve(too_large_.size());
    for (const std::size_t index : too_large_) requests.push_back(request_to_collect(found_[index], false));
    return requests;
  }

  // A peer that is far behind reaches the common cycle in steps; its own cycles are valid cursors meanwhile.
  CycleId cycle_to_open(const Found& peer) const {
    return options_.read_only ? CycleId{} : std::min(gathered_.cycle, tracker::reach_of(peer.current));
  }

  void take_marks(std::size_t index, const base::Result<HttpResponse>& response) {
    const bool is_disputed = index >= found_.size();
    const Found& peer = is_disputed ? disputed_[index - found_.size()] : found_[index];
    const bool is_too_large = !response && response.error().code == std::errc::message_size;
    if (is_too_large && round_ == Round::collect && !is_disputed) {
      too_large_.push_back(index);
      return;
    }
    const auto frame = read_frame(response, options_.cluster);
    if (is_disputed) {
      // Its marks may be those of the node. The cursor does not move, so a false claim does no harm.
      if (frame && frame->sender.node == peer.name) merge(peer, frame->answer.marks);
    } else if (!frame) {
      miss_marks(peer, frame.error().message);
    } else if (frame->sender.node != peer.name) {
      miss_marks(peer, fmt::format("node '{}' answers in its place", frame->sender.node));
    } else if (frame->answer.current > tracker::reach_of(std::max(gathered_.cycle, peer.current))) {
      miss_marks(peer,
                 fmt::format("it claims to be in cycle {} all at once, see \"Cycle numbers out of reach\" in "
                             "docs/cluster.md",
                             frame->answer.current.value));
    } else if (const auto own = check_own_instance(peer, frame->answer.instance); !own) {
      miss_marks(peer, own.error().message);
    } else {
      take_answer(peer, *frame);
    }
  }

  void miss_marks(const Found& peer, const std::string& why) {
    report(peer.name, peer.url, why);
    remember_unread(peer.name);
  }

  // Whether a tracker under the node's own name is that of the node's own daemon.
  base::Result<> check_own_instance(const Found& peer, const tracker::InstanceId& instance) const {
    if (peer.name != options_.own_name || !options_.own_instance) return {};
    const auto own = options_.own_instance();
    if (!own) {
      return base::Error(
          own.error().code,
          fmt::format("whether it is the daemon of this node is not known: {}; the scan and the daemon must "
                      "use the same node.data_dir, and the scan must be able to read it",
                      own.error().message));
    }
    if (*own == instance) return {};
    return base::Error(
        std::make_error_code(std::errc::protocol_error),
        "it has the name of this node, but is not the daemon of its node.data_dir: check --url and listen; "
        "if that daemon has just started with a new instance, the next scan reads it");
  }

  // A scan is partial if the daemon of its own node did not respond, whatever other peers responded.
  void miss_own() {
    const bool is_named =
        options_.own_name.empty() ||
        std::ranges::find(gathered_.peers, options_.own_name, &PeerOutcome::name) != gathered_.peers.end();
    const auto other = names_.find(options_.own_url);
    if (is_named || other == names_.end()) return;  // one that does not respond is reported by its URL
    report(options_.own_name, options_.own_url,
           fmt::format("the daemon of this node did not respond: at {} is node '{}'; check --url and listen",
                       options_.own_url, base::printable(other->second)));
    remember_unread(options_.own_name);
  }

  void take_answer(const Found& peer, const CycleFrame& frame) {
    const tracker::CycleAnswer& answer = frame.answer;
    const auto known = known_.find(peer.name);
    const bool is_unread = known == known_.end() || known->second.instance.is_none();
    // A tracker that is there now need not be the expected one that was not found.
    const bool is_new = is_unread && (known == known_.end() || known->second.cycle != unknown_since) &&
                        !is_in_place_of_another(peer);
    // A cursor is valid only for the instance that issued it, whatever the peer reports on gaps.
    const bool is_gap = answer.gap || is_unread || known->second.instance != answer.instance ||
                        known->second.cycle == CycleId{};
    if (is_gap && !(is_new && options_.trust_new_peers && answer.complete_since_birth)) {
      gathered_.gaps.push_back(
          is_unread ? fmt::format("peer '{}' was never read before", peer.name)
                    : fmt::format("peer '{}' lost, or no longer keeps, what was marked since its last read",
                                  peer.name));
    }
    if (frame.rules_digest != options_.rules_digest) {
      gathered_.gaps.push_back(fmt::format(
          "peer '{}' ignores other paths than this node: make 'namespace' the same and restart it",
          peer.name));
    }
    if (round_ == Round::measure) {
      gathered_.gaps.push_back(
          fmt::format("peer '{}' holds more marks than a scan reads in one answer", peer.name));
    }
    merge(peer, answer.marks);
    gathered_.cursors[peer.name] = answer.next();
    // own_url is specific to this scan, so it is not stored as a home. The node's own name needs no stored
    // home.
    const bool is_own_url = peer.url == options_.own_url;
    if (!is_own_url) set_home(gathered_.cursors, peer.name, peer.url);
    if (is_own_url && peer.name == options_.own_name) set_home(gathered_.cursors, peer.name, {});
    gathered_.peers.push_back({peer.name, peer.url, true, {}});
  }

  // Whether a peer of the same name and another instance is expected.
  bool is_in_place_of_another(const Found& peer) const {
    return std::ranges::any_of(options_.members.expected, [&](const ExpectedPeer& expected) {
      return expected.name == peer.name && !expected.instance.is_none() && expected.instance != peer.instance;
    });
  }

  void merge(const Found& peer, const tracker::MarkSet& marks) {
    const double items = tracker::MarkSetFigures::of(marks).items;
    if (gathered_.marks.try_add_apart(marks, options_.marks_bytes_max)) {
      answered_items_ += items;
      return;
    }
    unmerged_items_ += items;
    gathered_.gaps.push_back(
        fmt::format("peer '{}' sent filters of more than {} bytes, those of others included", peer.name,
                    options_.marks_bytes_max));
  }

  // The number of distinct items. The sum over the responses counts items of two peers twice, but a full
  // merged filter shows too few.
  double merged_items() const {
    tracker::MarkSet merged;
    if (gathered_.marks.group_count() > 1) merged.merge(gathered_.marks);
    const tracker::MarkSet& all = merged.empty() ? gathered_.marks : merged;
    const bool is_below_saturation = std::ranges::all_of(all.filters(), [](const auto& filter) {
      return tracker::FilterFigures::of(filter).density <= countable_density_max;
    });
    const double items = tracker::MarkSetFigures::of(all).items;
    return is_below_saturation ? items : std::max(items, answered_items_);
  }

  // A peer that was read before and is at no endpoint any more is a gap: its marks are gone with it. While
  // some endpoint does not respond, the peer may be there.
  void forget_the_gone() {
    std::erase_if(gathered_.cursors, [&](const auto& entry) { return is_left_address(entry); });
    if (!gathered_.complete()) return;
    std::set<std::string_view> there;
    for (const PeerOutcome& peer : gathered_.peers) there.insert(peer.name);
    std::erase_if(gathered_.cursors, [&](const auto& entry) {
      const std::string& name = entry.first;
      if (there.contains(name) || urls_.contains(name) || is_home_key(name)) return false;
      gathered_.gaps.push_back(fmt::format("peer '{}' is no longer among the peers", name));
      return true;
    });
    forget_homes(gathered_.cursors);
  }

  // An address that is no longer an endpoint, and whose tracker is known by name.
  bool is_left_address(const tracker::Cursors::value_type& entry) const {
    const auto& [name, cursor] = entry;
    const bool is_address = name.find(':') != std::string::npos;
    const bool is_read = !cursor.instance.is_none() && cursor.cycle != unknown_since;
    return is_address && is_read && !urls_.contains(name) && !is_home_key(name);
  }

  void report(const std::string& name, const std::string& url, const std::string& error) {
    gathered_.peers.push_back({name, url, false, error});
  }

  struct Silent {
    std::size_t index = 0;  // of the endpoint
    std::string error;
  };

  // In the cursor of an address (otherwise 0): the tracker that responded there last is elsewhere, and a
  // later one has not responded yet. In that of a name without an instance: the peer was expected, and not
  // found.
  static constexpr CycleId unknown_since{1};

  const tracker::Cursors known_;
  const GatherOptions options_;
  std::vector<base::Endpoint> endpoints_;  // departed ones last
  std::set<std::string> urls_;             // of them
  std::size_t first_departed_ = 0;
  Round round_ = Round::none;
  Gathered gathered_;
  std::vector<Found> claims_;    // all that responded
  std::vector<Found> found_;     // accepted, each once
  std::vector<Found> disputed_;  // their marks are merged, no cursor moves
  std::vector<Silent> silent_;
  std::vector<std::size_t> too_large_;        // indices into found_: the response was too large
  std::map<std::string, std::string> names_;  // of the nodes that responded, by URL
  double answered_items_ = 0;                 // the sum over the merged responses
  double unmerged_items_ = 0;
};

Gathering::Gathering(const tracker::Cursors& cursors, GatherOptions options)
    : state_(std::make_unique<State>(cursors, std::move(options))) {}
Gathering::~Gathering() = default;

std::vector<HttpRequest> Gathering::next_round() { return state_->next_round(); }

void Gathering::take(std::size_t index, const base::Result<HttpResponse>& response) {
  state_->take(index, response);
}

Gathered Gathering::finish() { return state_->finish(); }

bool Gathered::complete() const {
  return unknown_sources.empty() && std::ranges::all_of(peers, &PeerOutcome::ok);
}

bool Gathered::any_answered() const { return std::ranges::any_of(peers, &PeerOutcome::ok); }

Gathered gather(Transport& transport, const tracker::Cursors& cursors, const GatherOptions& options) {
  Gathering gathering(cursors, options);
  for (auto requests = gathering.next_round(); !requests.empty(); requests = gathering.next_round()) {
    transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      gathering.take(index, response);
    });
  }
  return gathering.finish();
}

}  // namespace spoor::peer
