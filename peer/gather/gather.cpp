#include "peer/gather/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/gather/name_claims.h"
#include "peer/gather/peer_finder.h"

namespace spoor::peer {
namespace {

using tracker::CycleId;

// Over this density, the number of bits set is no useful estimate of the number of items.
constexpr double countable_density_max = 0.95;

}  // namespace

class Gathering::State {
 public:
  State(const tracker::Cursors& cursors, GatherOptions options)
      : known_(cursors), options_(std::move(options)), finder_(known_, options_, gathered_) {
    gathered_.cursors = cursors;
    gathered_.gaps = options_.members.gaps;
  }

  std::vector<HttpRequest> next_round() {
    switch (round_) {
      case Round::none:
        round_ = Round::find;
        return finder_.requests();
      case Round::find:
        round_ = Round::collect;
        finder_.decide();
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
      finder_.take(index, response);
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

  CycleId common_cycle() const {
    CycleId highest;
    if (finder_.found().empty()) return highest;
    std::chrono::milliseconds age{};
    for (const FoundPeer& peer : finder_.found()) {
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
    requests.reserve(finder_.found().size() + finder_.disputed().size());
    for (const FoundPeer& peer : finder_.found()) requests.push_back(request_to_collect(peer, true));
    for (const FoundPeer& peer : finder_.disputed()) requests.push_back(request_to_collect(peer, true));
    return requests;
  }

  HttpRequest request_to_collect(const FoundPeer& peer, bool marks_wanted) const {
    const auto known = known_.find(peer.name);
    const bool is_read = known != known_.end() && !known->second.instance.is_none();
    const tracker::Cursor cursor = is_read ? known->second : tracker::Cursor{};
    return cycle_request(peer.endpoint, options_.cluster,
                         {.current = cycle_to_open(peer),
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
    for (const std::size_t index : too_large_)
      requests.push_back(request_to_collect(finder_.found()[index], false));
    return requests;
  }

  // A peer that is far behind reaches the common cycle in steps; its own cycles are valid cursors meanwhile.
  CycleId cycle_to_open(const FoundPeer& peer) const {
    return options_.read_only ? CycleId{} : std::min(gathered_.cycle, tracker::reach_of(peer.current));
  }

  void take_marks(std::size_t index, const base::Result<HttpResponse>& response) {
    const bool is_disputed = index >= finder_.found().size();
    const FoundPeer& peer =
        is_disputed ? finder_.disputed()[index - finder_.found().size()] : finder_.found()[index];
    const bool is_too_large = !response && response.error().code == std::errc::message_size;
    if (is_too_large && round_ == Round::collect && !is_disputed) {
      too_large_.push_back(index);
      return;
    }
    const auto frame = read_member_frame(response, options_.cluster);
    if (is_disputed) {
      // Its marks may be those of the node. The cursor does not move, so a false claim does no harm.
      if (frame && frame->sender.node == peer.name) merge(peer, frame->answer.marks);
    } else if (!frame) {
      miss(peer.name, peer.url, frame.error().message);
    } else if (frame->sender.node != peer.name) {
      miss(peer.name, peer.url, fmt::format("node '{}' answers in its place", frame->sender.node));
    } else if (frame->answer.current > tracker::reach_of(std::max(gathered_.cycle, peer.current))) {
      miss(peer.name, peer.url,
           fmt::format("it claims to be in cycle {} all at once, see \"Cycle numbers out of reach\" in "
                       "docs/cluster.md",
                       frame->answer.current.value));
    } else if (const auto own = check_own_instance(peer, frame->answer.instance); !own) {
      miss(peer.name, peer.url, own.error().message);
    } else {
      take_answer(peer, *frame);
    }
  }

  // One that was never read stays so.
  void miss(const std::string& name, const std::string& url, const std::string& why) {
    gathered_.peers.push_back({name, url, false, why});
    gathered_.cursors.try_emplace(name);
  }

  // Whether a tracker under the node's own name is that of the node's own daemon.
  base::Result<> check_own_instance(const FoundPeer& peer, const tracker::InstanceId& instance) const {
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
    const auto other = finder_.node_at(options_.own_url);
    if (is_named || !other) return;  // one that does not respond is reported by its URL
    miss(options_.own_name, options_.own_url,
         fmt::format("the daemon of this node did not respond: at {} is node '{}'; check --url and listen",
                     options_.own_url, base::printable(*other)));
  }

  void take_answer(const FoundPeer& peer, const CycleFrame& frame) {
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
  bool is_in_place_of_another(const FoundPeer& peer) const {
    return std::ranges::any_of(options_.members.expected, [&](const ExpectedPeer& expected) {
      return expected.name == peer.name && !expected.instance.is_none() && expected.instance != peer.instance;
    });
  }

  void merge(const FoundPeer& peer, const tracker::MarkSet& marks) {
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
      if (there.contains(name) || finder_.is_endpoint(name) || is_home_key(name)) return false;
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
    return is_address && is_read && !finder_.is_endpoint(name) && !is_home_key(name);
  }

  const tracker::Cursors known_;
  const GatherOptions options_;
  Round round_ = Round::none;
  Gathered gathered_;
  PeerFinder finder_;                   // refers to those above
  std::vector<std::size_t> too_large_;  // indices of found peers: the response was too large
  double answered_items_ = 0;           // the sum over the merged responses
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
