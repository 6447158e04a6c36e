#include "peer/gather/gather.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "peer/gather/cycle_exchange.h"
#include "peer/gather/peer_finder.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::peer {
namespace {

using tracker::CycleId;
using tracker::KnownPeer;
using tracker::PeerId;
using tracker::Standing;

// Of peers that are gone or retired: beyond it, the records of some may be met again as if they were new.
constexpr std::size_t gone_max = 20'000;
constexpr std::size_t unread_max = 10'000;  // of peers that were never read, according to records

// Over this density, the number of bits set is no useful estimate of the number of items.
constexpr double countable_density_max = 0.95;

}  // namespace

class Gathering::State {
 public:
  State(const tracker::PeerBook& known, GatherOptions options)
      : known_(known), options_(std::move(options)), finder_(known_, options_, gathered_) {
    gathered_.book = known;
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
    take_members();
    take_retired();
    miss_unread();
    miss_silent();
    bound_book();
    gathered_.items = merged_items() + unmerged_items_;
    gathered_.marks.drop_members();
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
    const bool opens = !options_.read_only && age >= options_.min_cycle_age;
    return opens ? std::min(next(highest), {CycleId::request_max}) : highest;
  }

  // Round 2: the marks of all peers, from this scanner's cursors up to the common cycle.
  std::vector<HttpRequest> requests_to_collect() const {
    std::vector<HttpRequest> requests;
    for (const auto* const peers : {&finder_.found(), &finder_.disputed()}) {
      for (const FoundPeer& peer : *peers) requests.push_back(request_to_collect(peer, true));
    }
    return requests;
  }

  HttpRequest request_to_collect(const FoundPeer& peer, bool marks_wanted) const {
    const CycleId oldest = cycle_of(peer.id());
    const bool is_read = oldest != CycleId();
    // A peer that is far behind reaches the common cycle in steps; its own cycles are valid cursors
    // meanwhile.
    const CycleId to_open = std::min(gathered_.cycle, tracker::reach_of(peer.current));
    return cycle_request(peer.endpoint, {options_.cluster,
                                         {.current = options_.read_only ? CycleId{} : to_open,
                                          .oldest = oldest,
                                          .instance = is_read ? peer.instance : tracker::InstanceId(),
                                          .marks_wanted = marks_wanted,
                                          .start_level = options_.read_only ? 0 : options_.start_level,
                                          .members_wanted = !marks_wanted}});
  }

  // Round 3: of peers whose marks were too large, reads only the cycle, and the records of members, which a
  // full walk does not show. The gap makes this scan walk everything, which covers their marks so far; the
  // next scan reads their marks from this cycle on.
  std::vector<HttpRequest> requests_to_measure() const {
    std::vector<HttpRequest> requests;
    requests.reserve(too_large_.size());
    for (const std::size_t index : too_large_)
      requests.push_back(request_to_collect(finder_.found()[index], false));
    return requests;
  }

  // 0: it was never read.
  CycleId cycle_of(const PeerId& id) const {
    const auto known = known_.find(id);
    return known == known_.end() ? CycleId() : known->second.cycle;
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
      miss(peer, frame.error().message);
    } else if (frame->sender.node != peer.name) {
      miss(peer, fmt::format("node '{}' answers in its place", frame->sender.node));
    } else if (frame->answer.current > tracker::reach_of(std::max(gathered_.cycle, peer.current))) {
      miss(peer,
           fmt::format("it claims to be in cycle {} all at once, see \"A cycle number out of reach\" in "
                       "/usr/share/doc/spoor/docs/troubleshooting.md",
                       frame->answer.current.value));
    } else if (peer.name == options_.own_name && !options_.own_instance.is_none() &&
               frame->answer.instance != options_.own_instance) {
      miss(peer, "it has the name of this node, and is another daemon: give each node a name of its own");
    } else {
      take_answer(peer, *frame);
    }
  }

  // A tracker that was found, and not read: expected from now on.
  void miss(const FoundPeer& peer, const std::string& why) {
    gathered_.peers.push_back({peer.name, peer.url, false, why});
    gathered_.book.try_emplace(peer.id());
    is_running_.insert(peer.id());
  }

  void take_answer(const FoundPeer& peer, const CycleFrame& frame) {
    const tracker::CycleAnswer& answer = frame.answer;
    const PeerId id{peer.name, answer.instance};
    const auto known = known_.find(id);
    const bool is_unread = cycle_of(id) == CycleId();
    const bool is_copied = known != known_.end() && known->second.standing == Standing::copied;
    // It was restored from a copy, or its name was used falsely: what it acknowledged meanwhile may be gone.
    if (frame.is_closed) is_closed_.insert(id);
    if (had_retired(id) && !frame.is_closed)
      gathered_.gaps.push_back(fmt::format("peer '{}' had retired, and is a member again", peer.name));
    // What was never read is read from its birth on: nothing that was acknowledged before is missing, since
    // no instance acknowledges marks before another member has recorded it. Nothing is missing of one that
    // had retired, and still acknowledges none, whatever its cycles are after a crash.
    const bool is_settled = had_retired(id) && frame.is_closed;
    if (is_copied || (!is_settled && (is_unread ? !answer.complete_since_birth : answer.gap))) {
      gathered_.gaps.push_back(
          is_unread
              ? fmt::format("peer '{}' no longer keeps all marks since its birth, and was never read before",
                            peer.name)
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
    note_members(tracker::member_marks(answer.marks), peer.name);
    KnownPeer& entry = gathered_.book[id];
    // own_url is specific to this scan, so it is not stored as a home. The node's own name needs none.
    const bool is_own_url = peer.url == options_.own_url;
    const std::string home = !is_own_url                      ? peer.url
                             : peer.name == options_.own_name ? std::string()
                                                              : entry.home;
    entry = {.cycle = answer.current,
             .home = home,
             .standing = is_settled ? Standing::retired : Standing::expected,
             .run = entry.run};
    is_read_.insert(id);
    gathered_.peers.push_back({peer.name, peer.url, true, {}});
  }

  void note_members(const tracker::MemberMarks& members, const std::string& name) {
    for (const auto& [id, run] : members.joined) joined_[id] = std::max(joined_[id], run);
    for (const auto& [id, retired] : members.retired) retired_[id] = std::max(retired_[id], retired);
    if (members.is_incomplete)
      gathered_.gaps.push_back(fmt::format("peer '{}' has met more members than it can record", name));
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

  // Members that others have met: from now on a scan that does not read them is partial. One that was met
  // again is not silent to all.
  void take_members() {
    auto unread = static_cast<std::size_t>(std::ranges::count_if(gathered_.book, [](const auto& entry) {
      return entry.second.is_expected() && entry.second.cycle == CycleId();
    }));
    bool are_too_many = false;
    for (const auto& [id, is_alive] : options_.members.registered) joined_.try_emplace(id, 0);
    for (const auto& [id, run] : joined_) {
      if (!gathered_.book.contains(id) && ++unread > unread_max) {
        are_too_many = true;
        continue;
      }
      KnownPeer& peer = gathered_.book[id];
      if (run <= peer.run) continue;
      peer.run = run;
      peer.silent = {};
      if (peer.standing == Standing::gone) peer.standing = Standing::expected;  // it has returned
      if (had_retired(id)) meet_again(id, peer);
    }
    if (are_too_many && !options_.own_only)
      gathered_.gaps.push_back(
          fmt::format("peers reported more than {} members that were never read", unread_max));
  }

  bool had_retired(const PeerId& id) const {
    const auto known = known_.find(id);
    return known != known_.end() && known->second.standing == Standing::retired;
  }

  // One that had retired has run from an old copy of its files: the cycle in the book is not of its memory.
  void meet_again(const PeerId& id, KnownPeer& peer) {
    if (is_closed_.contains(id)) {
      gathered_.gaps.push_back(fmt::format("peer '{}' had retired, and was a member again", id.name));
    } else if (!is_read_.contains(id)) {
      peer.standing = Standing::copied;
    }
  }

  // Members whose marks others have adopted: they are not expected. This scan has read the marks, but for
  // those before the ones adopted.
  void take_retired() {
    if (options_.own_only) return;  // the member with the marks is not read
    for (const auto& [id, retired] : retired_) {
      KnownPeer& peer = gathered_.book[id];
      if (retired.run < peer.run) continue;  // it runs again
      if (had_retired(id) && retired.run > known_.at(id).run) meet_again(id, peer);
      const bool is_first = known_.empty() && !options_.has_scanned;  // which walks everything
      const bool is_covered = is_first || is_read_.contains(id) ||
                              (peer.standing != Standing::copied && peer.cycle >= retired.adopted_from);
      peer.run = retired.run;
      peer.standing = Standing::retired;
      peer.silent = {};
      peer.cycle = std::max(peer.cycle, retired.adopted_from);
      if (is_covered) continue;
      gathered_.gaps.push_back(
          fmt::format("peer '{}' has retired, and was not read since cycle {}, from which on another one has "
                      "its marks",
                      id.name, retired.adopted_from.value));
    }
  }

  // The expected peers that were not read.
  void miss_unread() {
    for (const PeerOutcome& peer : gathered_.peers) {
      if (!peer.ok) failed_.insert(peer.name);
    }
    find_silent_homes();
    for (auto& [id, peer] : gathered_.book) {
      const bool is_running = is_running_.contains(id) || finder_.refused().contains(id);
      const bool is_needed = !options_.own_only || id.name == options_.own_name;
      if (!is_needed || !peer.is_expected() || is_read_.contains(id) || is_running) continue;
      // A record that is new in this scan may be of an instance that has begun, or returned, since the first
      // round.
      const auto known = known_.find(id);
      const bool is_new = known == known_.end() || known->second.run < peer.run;
      // What an earlier instance acknowledged before the first scan, that scan walks.
      if (known_.empty() && !options_.has_scanned && is_replaced(id)) {
        peer.standing = Standing::gone;
        continue;
      }
      if (!is_new && is_replaced(id)) {
        gathered_.gaps.push_back(
            fmt::format("peer '{}' lost, or no longer keeps, what was marked since its last read", id.name));
        peer.standing = Standing::gone;
        continue;
      }
      if (!is_new && options_.members.unknown_sources.empty())
        peer.silent += std::min(options_.since_last_scan, options_.forget_after / 4);
      if (may_see_itself_listed(id, peer)) peer.silent = {};
      if (!is_new && !may_be_running(id, peer) && peer.silent >= options_.forget_after) {
        gathered_.gaps.push_back(fmt::format("peer '{}' is no longer among the peers", id.name));
        peer.standing = Standing::gone;
        continue;
      }
      unread_.insert(peer.home);
      report_unread(id, peer);
    }
  }

  // Another instance of the name responds: this one is gone for good.
  bool is_replaced(const PeerId& id) const {
    return std::ranges::any_of(is_read_, [&](const PeerId& read) { return read.name == id.name; });
  }

  // It may be behind any listed address that does not respond. One that refuses the credentials at its home
  // runs: they are not sent to an address that no source lists.
  bool may_be_running(const PeerId& id, const KnownPeer& peer) const {
    const auto has_name = [&](const PeerId& running) { return running.name == id.name; };
    const auto refuses = [&](const PeerFinder::Silent& each) {
      return each.refuses && each.url == peer.home;
    };
    if (std::ranges::any_of(finder_.silent(), refuses)) return true;
    return id.name == options_.own_name || std::ranges::any_of(is_running_, has_name) ||
           !options_.members.unknown_sources.empty() || is_listed_silent();
  }

  // By a source that it reads as well: so long it acknowledges marks, though it reaches no member. The DNS
  // does not say whose a silent address is: it is that of the peer that was read there, or anybody's.
  bool may_see_itself_listed(const PeerId& id, const KnownPeer& peer) const {
    const auto registered = options_.members.registered.find(id);
    if (registered != options_.members.registered.end() && registered->second) return true;
    return silent_homes_.contains(peer.home) || silent_homes_.contains("") ||
           (peer.home.empty() && !silent_homes_.empty());
  }

  void find_silent_homes() {
    std::set<std::string> homes;
    for (const auto& [id, peer] : gathered_.book) {
      if (peer.is_expected()) homes.insert(peer.home);
    }
    std::set<std::string> named = options_.members.named_urls;
    for (const auto& [name, urls] : options_.members.listed_homes) named.insert(urls.begin(), urls.end());
    for (const PeerFinder::Silent& each : finder_.silent()) {
      if (each.is_alive && !named.contains(each.url))
        silent_homes_.insert(homes.contains(each.url) ? each.url : "");
    }
  }

  bool is_listed_silent() const {
    return std::ranges::any_of(finder_.silent(), &PeerFinder::Silent::is_alive);
  }

  // A silent endpoint is reported by its URL.
  void report_unread(const PeerId& id, const KnownPeer& peer) {
    const std::string& home = id.name == options_.own_name ? options_.own_url : peer.home;
    const bool is_silent =
        std::ranges::find(finder_.silent(), home, &PeerFinder::Silent::url) != finder_.silent().end();
    if (is_silent || !failed_.insert(id.name).second) return;
    gathered_.peers.push_back(
        {id.name, peer.home, false,
         peer.cycle == CycleId()
             ? "it joined the cluster and may have acknowledged marks, but responds at no address that is "
               "known here"
             : "it does not respond at the address where it was read last, nor at any other"});
  }

  // The endpoints that did not respond. One where the known peers are elsewhere now is of no interest; one
  // where they are gone is: they may be back, and acknowledge marks.
  void miss_silent() {
    for (const PeerFinder::Silent& each : finder_.silent()) {
      const auto left = [&](const auto& entry) {
        return entry.second.home == each.url && is_read_.contains(entry.first);
      };
      const bool is_left = each.url != options_.own_url && std::ranges::any_of(known_, left);
      if (!unread_.contains(each.url) && (!each.is_alive || is_left)) continue;
      const auto retired = std::ranges::find_if(gathered_.book, [&](const auto& entry) {
        return entry.second.standing == Standing::retired && entry.second.home == each.url;
      });
      const bool is_retired = retired != gathered_.book.end() && !unread_.contains(each.url);
      gathered_.peers.push_back(
          {each.url, each.url, false,
           is_retired
               ? fmt::format("node '{}' has retired there: list this address no longer", retired->first.name)
               : each.error});
    }
  }

  void bound_book() {
    std::size_t gone = 0;
    std::erase_if(gathered_.book,
                  [&](const auto& entry) { return !entry.second.is_expected() && ++gone > gone_max; });
  }

  const tracker::PeerBook known_;
  const GatherOptions options_;
  Round round_ = Round::none;
  Gathered gathered_;
  PeerFinder finder_;                       // refers to those above
  std::vector<std::size_t> too_large_;      // indices of found peers: the response was too large
  std::map<PeerId, std::uint64_t> joined_;  // according to the records of those that were read
  std::map<PeerId, tracker::Retired> retired_;
  std::set<PeerId> is_read_;
  std::set<PeerId> is_closed_;          // read, and acknowledges no more marks
  std::set<PeerId> is_running_;         // found, and not read
  std::set<std::string> failed_;        // the names of those that were not read
  std::set<std::string> unread_;        // the homes of expected peers that were not read
  std::set<std::string> silent_homes_;  // that the DNS lists; empty: of nobody that was read
  double answered_items_ = 0;           // the sum over the merged responses
  double unmerged_items_ = 0;
};

Gathering::Gathering(const tracker::PeerBook& known, GatherOptions options)
    : state_(std::make_unique<State>(known, std::move(options))) {}
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

Gathered gather(Transport& transport, const tracker::PeerBook& known, const GatherOptions& options) {
  Gathering gathering(known, options);
  for (auto requests = gathering.next_round(); !requests.empty(); requests = gathering.next_round()) {
    transport.exchange(requests, [&](std::size_t index, const base::Result<HttpResponse>& response) {
      gathering.take(index, response);
    });
  }
  return gathering.finish();
}

}  // namespace spoor::peer
