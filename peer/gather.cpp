#include "peer/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "peer/cycle_frame.h"
#include "peer/cycle_request.h"

namespace spoor::peer {
namespace {

using tracker::CycleId;

// A larger filter stays as it came, if it came packed: it may be next to empty.
constexpr std::uint64_t unpacked_bytes_max = std::uint64_t{128} << 20U;

// A filter with hardly a bit left to set tells little of how many items have set the others.
constexpr double telling_density_max = 0.95;

// A living tracker, as it answered the first round.
struct Found {
  Endpoint endpoint;
  std::string name;
  tracker::InstanceId instance;
  std::uint64_t run = 0;
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
  return frame;
}

}  // namespace

class Gathering::State {
 public:
  State(std::span<const Endpoint> endpoints, const tracker::Cursors& cursors, GatherOptions options)
      : known_(cursors), options_(std::move(options)), endpoints_(endpoints.begin(), endpoints.end()) {
    for (const Endpoint& endpoint : endpoints_) urls_.insert(endpoint.to_string());
    first_lingering_ = endpoints_.size();
    for (const Endpoint& endpoint : options_.lingering) {
      if (urls_.insert(endpoint.to_string()).second) endpoints_.push_back(endpoint);
    }
    gathered_.cursors = cursors;
    gathered_.gaps = options_.known_gaps;
  }

  std::vector<HttpRequest> next_round() {
    switch (round_) {
      case Round::none:
        round_ = Round::find;
        return requests_to_find();
      case Round::find:
        round_ = Round::collect;
        settle_silent();
        miss_expected();
        drop_twins();
        gathered_.cycle = common_cycle();
        return requests_to_collect();
      case Round::collect:
        break;
    }
    return {};
  }

  void take(std::size_t index, const base::Result<HttpResponse>& response) {
    if (round_ == Round::find) {
      take_found(index, response);
    } else {
      take_marks(index, response);
    }
  }

  Gathered finish() {
    for (const std::string& source : options_.unknown_sources) {
      gathered_.peers.push_back({source, {}, false, "who is there could not be found out"});
    }
    forget_the_gone();
    gathered_.items = merged_items() + unmerged_items_;
    gathered_.marks.unpack(unpacked_bytes_max);
    if (!gathered_.gaps.empty()) gathered_.marks.add_tree("");
    std::sort(gathered_.peers.begin(), gathered_.peers.end(),
              [](const PeerOutcome& a, const PeerOutcome& b) { return a.name < b.name; });
    return std::move(gathered_);
  }

 private:
  enum class Round { none, find, collect };

  HttpRequest request_to(const Endpoint& endpoint, const tracker::CycleRequest& request) const {
    return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({options_.cluster, request})};
  }

  // Round 1: who lives at the endpoints, and in which cycle.
  std::vector<HttpRequest> requests_to_find() const {
    std::vector<HttpRequest> requests;
    requests.reserve(endpoints_.size());
    for (const Endpoint& endpoint : endpoints_) {
      requests.push_back(
          request_to(endpoint, {.current = {}, .oldest = {}, .instance = {}, .marks_wanted = false}));
    }
    return requests;
  }

  void take_found(std::size_t index, const base::Result<HttpResponse>& response) {
    const Endpoint& endpoint = endpoints_[index];
    const auto frame = read_frame(response, options_.cluster);
    const std::string url = endpoint.to_string();
    if (!frame) {
      gathered_.addresses[url] = AddressState::silent;
      silent_.push_back({index, frame.error().message});
      return;
    }
    gathered_.addresses[url] = AddressState::answered;
    names_[url] = frame->sender.node;
    if (url != options_.own_url) take_address(url, *frame);
    const bool seen = std::any_of(found_.begin(), found_.end(), [&](const Found& other) {
      return other.name == frame->sender.node && other.instance == frame->answer.instance &&
             other.run == frame->run;
    });
    if (seen) return;
    found_.push_back({endpoint, frame->sender.node, frame->answer.instance, frame->run, frame->answer.current,
                      frame->answer.current_age});
  }

  // Once it is known who was found: what to make of the endpoints that did not answer.
  void settle_silent() {
    for (const auto& [index, error] : silent_) {
      const Endpoint& endpoint = endpoints_[index];
      const std::string url = endpoint.to_string();
      const bool has_moved = has_moved_from(url);
      if (index >= first_lingering_ && has_moved) {
        settle_left(url);
        continue;
      }
      report(url, endpoint, error);
      if (url == options_.own_url) continue;
      remember_silent(url);
      if (has_moved) gathered_.cursors[url].cycle = unknown_since;
    }
  }

  // Whoever should be there, and is not.
  void miss_expected() {
    std::set<std::pair<std::string, tracker::InstanceId>> missed;
    for (const ExpectedPeer& expected : options_.expected) {
      const std::string url = expected.endpoint.to_string();
      const auto answered = names_.find(url);
      // One of another instance tells by itself that it lost its memory.
      const bool is_there =
          is_found(expected) || (answered != names_.end() && answered->second == expected.name);
      if (is_there || !missed.emplace(expected.name, expected.instance).second) continue;
      if (!has_namesake(expected))
        gathered_.cursors.try_emplace(expected.name, tracker::Cursor{{}, unknown_since});
      const auto state = gathered_.addresses.find(url);
      const bool is_reported = state != gathered_.addresses.end() && state->second == AddressState::silent;
      if (!is_reported) report(expected.name, expected.endpoint, "it does not answer under its own name");
    }
  }

  bool is_found(const ExpectedPeer& expected) const {
    return std::any_of(found_.begin(), found_.end(), [&](const Found& peer) {
      return peer.name == expected.name &&
             (expected.instance.is_none() || peer.instance == expected.instance);
    });
  }

  bool has_namesake(const ExpectedPeer& expected) const {
    return !is_found(expected) && std::any_of(found_.begin(), found_.end(),
                                              [&](const Found& peer) { return peer.name == expected.name; });
  }

  // Where it is known whose address it is, that tracker is remembered by its name. Not so if another one has
  // the name now.
  void remember_silent(const std::string& url) {
    const ExpectedPeer* known = nullptr;
    for (const ExpectedPeer& expected : options_.expected) {
      if (expected.endpoint.to_string() != url) continue;
      if (expected.instance.is_none() || has_namesake(expected)) return remember_unread(url);
      known = &expected;
    }
    if (known == nullptr) return remember_unread(url);
    gathered_.cursors.try_emplace(url, tracker::Cursor{known->instance, {}});
  }

  // Whether the tracker that answered there last is found at another endpoint.
  bool has_moved_from(const std::string& url) const {
    const auto last = known_.find(url);
    return last != known_.end() && !last->second.instance.is_none() &&
           std::any_of(found_.begin(), found_.end(),
                       [&](const Found& peer) { return peer.instance == last->second.instance; });
  }

  // Nobody is there any more. Waiting would not help: who was there after the one that moved was never read.
  void settle_left(const std::string& url) {
    gathered_.addresses[url] = AddressState::left;
    CycleId& state = gathered_.cursors[url].cycle;
    if (state == unknown_since)
      gathered_.gaps.push_back(fmt::format("'{}' was left before it answered", url));
    state = {};
  }

  // What was never read may still have acknowledged marks: when it leaves the peers, they are a gap. A
  // cursor of no instance stands for it, under its name, or under its URL while that is all we know.
  void remember_unread(const std::string& name_or_url) { gathered_.cursors.try_emplace(name_or_url); }

  // Remembers who answers there. An address that never answered may have been another node's until now,
  // with marks that nobody read.
  void take_address(const std::string& url, const CycleFrame& frame) {
    const auto before = known_.find(url);
    const bool is_unread =
        before != known_.end() &&
        (before->second.instance.is_none() ||
         (before->second.cycle == unknown_since && before->second.instance != frame.answer.instance));
    if (is_unread) gathered_.gaps.push_back(fmt::format("'{}' never answered before", url));
    gathered_.cursors[url] = {frame.answer.instance, {}};
  }

  // Two living trackers under one name can't be told apart by a cursor: a gap, in every scan, until
  // one of them is gone or renamed; and once more after that, for what the other took along.
  void drop_twins() {
    std::map<std::string, int> count;
    for (const Found& peer : found_) ++count[peer.name];
    for (const auto& [name, instances] : count) {
      if (instances == 1) continue;
      gathered_.gaps.push_back(fmt::format(
          "{} living trackers call themselves '{}'; give each node a name of its own", instances, name));
    }
    std::erase_if(found_, [&](const Found& peer) {
      const bool is_twin = count[peer.name] > 1;
      if (!is_twin) return false;
      report(peer.name, peer.endpoint, "another living tracker has the same name");
      gathered_.cursors[peer.name] = {peer.instance, {}};  // known, and never covered by any history
      return true;
    });
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

  // Round 2: everyone's marks, from where this scanner stands, up to the common cycle.
  std::vector<HttpRequest> requests_to_collect() const {
    std::vector<HttpRequest> requests;
    requests.reserve(found_.size());
    for (const Found& peer : found_) {
      const auto known = known_.find(peer.name);
      const bool is_read = known != known_.end() && !known->second.instance.is_none();
      const tracker::Cursor cursor = is_read ? known->second : tracker::Cursor{};
      requests.push_back(
          request_to(peer.endpoint, {.current = options_.read_only ? CycleId{} : gathered_.cycle,
                                     .oldest = cursor.cycle,
                                     .instance = cursor.instance,
                                     .marks_wanted = true,
                                     .start_level = options_.read_only ? 0 : options_.start_level}));
    }
    return requests;
  }

  void take_marks(std::size_t index, const base::Result<HttpResponse>& response) {
    const Found& peer = found_[index];
    const auto frame = read_frame(response, options_.cluster);
    if (!frame) {
      report(peer.name, peer.endpoint, frame.error().message);
      remember_unread(peer.name);
    } else if (frame->sender.node != peer.name) {
      report(peer.name, peer.endpoint, fmt::format("node '{}' answers in its place", frame->sender.node));
      remember_unread(peer.name);
    } else {
      take_answer(peer, *frame);
    }
  }

  void take_answer(const Found& peer, const CycleFrame& frame) {
    const tracker::CycleAnswer& answer = frame.answer;
    const auto known = known_.find(peer.name);
    const bool is_unread = known == known_.end() || known->second.instance.is_none();
    // Whoever is there now need not be whom we missed.
    const bool is_new = is_unread && (known == known_.end() || known->second.cycle != unknown_since) &&
                        !is_in_place_of_another(peer);
    if (answer.gap && !(is_new && options_.trust_new_peers && answer.complete_since_birth)) {
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
    merge(peer, answer.marks);
    gathered_.cursors[peer.name] = answer.next();
    gathered_.peers.push_back({peer.name, peer.endpoint.to_string(), true, {}});
  }

  // Whether somebody of its name and of another instance is expected.
  bool is_in_place_of_another(const Found& peer) const {
    return std::any_of(options_.expected.begin(), options_.expected.end(), [&](const ExpectedPeer& expected) {
      return expected.name == peer.name && !expected.instance.is_none() && expected.instance != peer.instance;
    });
  }

  void merge(const Found& peer, const tracker::MarkSet& marks) {
    const double items = tracker::MarkSetFigures::of(marks).items;
    if (gathered_.marks.try_merge(marks, options_.marks_bytes_max)) {
      answered_items_ += items;
      return;
    }
    unmerged_items_ += items;
    gathered_.gaps.push_back(
        fmt::format("peer '{}' sent filters of more than {} bytes, those of others included", peer.name,
                    options_.marks_bytes_max));
  }

  // Of what was merged. The sum over the answers counts twice what two of them hold, but knows of
  // items that a full filter does not show.
  double merged_items() const {
    const auto& filters = gathered_.marks.filters();
    const bool is_telling = std::all_of(filters.begin(), filters.end(), [](const auto& filter) {
      return tracker::FilterFigures::of(filter).density <= telling_density_max;
    });
    const double merged = tracker::MarkSetFigures::of(gathered_.marks).items;
    return is_telling ? merged : std::max(merged, answered_items_);
  }

  // A peer that was read before and is at none of the endpoints any more took its marks along. While
  // some endpoint does not answer, it may be the one behind it.
  void forget_the_gone() {
    std::erase_if(gathered_.cursors, [&](const auto& entry) { return is_left_address(entry); });
    if (!gathered_.complete()) return;
    std::set<std::string_view> there;
    for (const PeerOutcome& peer : gathered_.peers) there.insert(peer.name);
    std::erase_if(gathered_.cursors, [&](const auto& entry) {
      const std::string& name = entry.first;
      if (there.contains(name) || urls_.contains(name)) return false;
      gathered_.gaps.push_back(fmt::format("peer '{}' is no longer among the peers", name));
      return true;
    });
  }

  // Whoever answered at an address that is gone is known by name.
  bool is_left_address(const tracker::Cursors::value_type& entry) const {
    const auto& [name, cursor] = entry;
    const bool is_address = name.find(':') != std::string::npos;
    const bool is_read = !cursor.instance.is_none() && cursor.cycle != unknown_since;
    return is_address && is_read && !urls_.contains(name);
  }

  void report(const std::string& name, const Endpoint& endpoint, const std::string& error) {
    gathered_.peers.push_back({name, endpoint.to_string(), false, error});
  }

  struct Silent {
    std::size_t index = 0;  // of the endpoint
    std::string error;
  };

  // In the cursor of an address, which else has no cycle: the tracker that answered there last is elsewhere,
  // and whoever is there since has not answered. In that of a name without an instance: it was expected, and
  // not found.
  static constexpr CycleId unknown_since{1};

  const tracker::Cursors known_;
  const GatherOptions options_;
  std::vector<Endpoint> endpoints_;  // those that linger last
  std::set<std::string> urls_;       // of them
  std::size_t first_lingering_ = 0;
  Round round_ = Round::none;
  Gathered gathered_;
  std::vector<Found> found_;
  std::vector<Silent> silent_;
  std::map<std::string, std::string> names_;  // of who answered, by URL
  double answered_items_ = 0;                 // the sum over the answers merged
  double unmerged_items_ = 0;
};

Gathering::Gathering(std::span<const Endpoint> endpoints, const tracker::Cursors& cursors,
                     GatherOptions options)
    : state_(std::make_unique<State>(endpoints, cursors, std::move(options))) {}
Gathering::~Gathering() = default;

std::vector<HttpRequest> Gathering::next_round() { return state_->next_round(); }

void Gathering::take(std::size_t index, const base::Result<HttpResponse>& response) {
  state_->take(index, response);
}

Gathered Gathering::finish() { return state_->finish(); }

bool Gathered::complete() const {
  return std::all_of(peers.begin(), peers.end(), [](const PeerOutcome& peer) { return peer.ok; });
}

bool Gathered::any_answered() const {
  return std::any_of(peers.begin(), peers.end(), [](const PeerOutcome& peer) { return peer.ok; });
}

Gathered gather(Transport& transport, std::span<const Endpoint> endpoints, const tracker::Cursors& cursors,
                const GatherOptions& options) {
  Gathering gathering(endpoints, cursors, options);
  for (auto requests = gathering.next_round(); !requests.empty(); requests = gathering.next_round()) {
    transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      gathering.take(index, response);
    });
  }
  return gathering.finish();
}

}  // namespace spoor::peer
