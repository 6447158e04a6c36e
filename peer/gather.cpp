#include "peer/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
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

class Gatherer {
 public:
  Gatherer(Transport& transport, const tracker::Cursors& cursors, const GatherOptions& options)
      : transport_(transport), known_(cursors), options_(options) {
    gathered_.cursors = cursors;
  }

  Gathered run(std::span<const Endpoint> endpoints) {
    endpoints_ = endpoints;
    find(endpoints);
    drop_twins();
    collect(common_cycle());
    forget_the_gone();
    gathered_.items = merged_items() + unmerged_items_;
    gathered_.marks.unpack(unpacked_bytes_max);
    if (!gathered_.gaps.empty()) gathered_.marks.add_tree("");
    std::sort(gathered_.peers.begin(), gathered_.peers.end(),
              [](const PeerOutcome& a, const PeerOutcome& b) { return a.name < b.name; });
    return std::move(gathered_);
  }

 private:
  HttpRequest request_to(const Endpoint& endpoint, const tracker::CycleRequest& request) const {
    return {endpoint, "POST", "/v1/peer/cycle", "application/json", to_json({options_.cluster, request})};
  }

  // Round 1: who lives at the endpoints, and in which cycle.
  void find(std::span<const Endpoint> endpoints) {
    std::vector<HttpRequest> requests;
    for (const Endpoint& endpoint : endpoints) {
      requests.push_back(
          request_to(endpoint, {.current = {}, .oldest = {}, .instance = {}, .marks_wanted = false}));
    }
    transport_.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      const Endpoint& endpoint = endpoints[index];
      const auto frame = read_frame(response, options_.cluster);
      const std::string url = endpoint.to_string();
      if (!frame) {
        report(url, endpoint, frame.error().message);
        if (url != options_.own_url) remember_unread(url);
        return;
      }
      if (url != options_.own_url) take_address(url, *frame);
      const bool seen = std::any_of(found_.begin(), found_.end(), [&](const Found& other) {
        return other.name == frame->sender.node && other.instance == frame->answer.instance &&
               other.run == frame->run;
      });
      if (seen) return;
      found_.push_back({endpoint, frame->sender.node, frame->answer.instance, frame->run,
                        frame->answer.current, frame->answer.current_age});
    });
  }

  // What was never read may still have acknowledged marks: when it leaves the peers, they are a gap. A
  // cursor of no instance stands for it, under its name, or under its URL while that is all we know.
  void remember_unread(const std::string& name_or_url) { gathered_.cursors.try_emplace(name_or_url); }

  // Remembers who answers there. An address that never answered may have been another node's until now,
  // with marks that nobody read.
  void take_address(const std::string& url, const CycleFrame& frame) {
    const auto before = known_.find(url);
    if (before != known_.end() && before->second.instance.is_none()) {
      gathered_.gaps.push_back(fmt::format("'{}' never answered before", url));
    }
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
    return options_.read_only || age < options_.min_cycle_age
               ? highest
               : std::min(next(highest), {CycleId::request_max});
  }

  // Round 2: everyone's marks, from where this scanner stands, up to the common cycle.
  void collect(CycleId cycle) {
    gathered_.cycle = cycle;
    std::vector<HttpRequest> requests;
    for (const Found& peer : found_) {
      const auto known = known_.find(peer.name);
      const tracker::Cursor cursor = known == known_.end() ? tracker::Cursor{} : known->second;
      requests.push_back(
          request_to(peer.endpoint, {.current = options_.read_only ? CycleId{} : cycle,
                                     .oldest = cursor.cycle,
                                     .instance = cursor.instance,
                                     .marks_wanted = true,
                                     .start_level = options_.read_only ? 0 : options_.start_level}));
    }
    transport_.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      const Found& peer = found_[index];
      auto frame = read_frame(response, options_.cluster);
      if (!frame) {
        report(peer.name, peer.endpoint, frame.error().message);
        remember_unread(peer.name);
      } else if (frame->sender.node != peer.name) {
        report(peer.name, peer.endpoint, fmt::format("node '{}' answers in its place", frame->sender.node));
        remember_unread(peer.name);
      } else {
        take(peer, *frame);
      }
    });
  }

  void take(const Found& peer, const CycleFrame& frame) {
    const tracker::CycleAnswer& answer = frame.answer;
    const auto known = known_.find(peer.name);
    const bool is_new = known == known_.end() || known->second.instance.is_none();
    if (answer.gap && !(is_new && options_.trust_new_peers && answer.complete_since_birth)) {
      gathered_.gaps.push_back(
          is_new ? fmt::format("peer '{}' was never read before", peer.name)
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
    if (!gathered_.complete()) return;
    std::erase_if(gathered_.cursors, [&](const auto& entry) {
      const std::string& name = entry.first;
      // Whoever answered at an address that is gone is known by name.
      const bool is_address = name.find(':') != std::string::npos;
      if (is_address && !entry.second.instance.is_none()) return !is_listed(name);
      const bool is_there = std::any_of(gathered_.peers.begin(), gathered_.peers.end(),
                                        [&](const PeerOutcome& peer) { return peer.name == name; });
      if (!is_there) gathered_.gaps.push_back(fmt::format("peer '{}' is no longer among the peers", name));
      return !is_there;
    });
  }

  bool is_listed(const std::string& url) const {
    return std::any_of(endpoints_.begin(), endpoints_.end(),
                       [&](const Endpoint& endpoint) { return endpoint.to_string() == url; });
  }

  void report(const std::string& name, const Endpoint& endpoint, const std::string& error) {
    gathered_.peers.push_back({name, endpoint.to_string(), false, error});
  }

  Transport& transport_;
  const tracker::Cursors& known_;
  const GatherOptions& options_;
  std::span<const Endpoint> endpoints_;
  Gathered gathered_;
  std::vector<Found> found_;
  double answered_items_ = 0;  // the sum over the answers merged
  double unmerged_items_ = 0;
};

}  // namespace

bool Gathered::complete() const {
  return std::all_of(peers.begin(), peers.end(), [](const PeerOutcome& peer) { return peer.ok; });
}

bool Gathered::any_answered() const {
  return std::any_of(peers.begin(), peers.end(), [](const PeerOutcome& peer) { return peer.ok; });
}

Gathered gather(Transport& transport, std::span<const Endpoint> endpoints, const tracker::Cursors& cursors,
                const GatherOptions& options) {
  return Gatherer(transport, cursors, options).run(endpoints);
}

}  // namespace spoor::peer
