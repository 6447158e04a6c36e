// Collects and merges the marks of the whole cluster for one scan (design: "Cycles in a cluster").
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "peer/address_state.h"
#include "peer/transport.h"
#include "tracker/cursor.h"
#include "tracker/mark_set.h"

namespace spoor::peer {

// Somebody that a source of members knows by name.
struct ExpectedPeer {
  std::string name;
  Endpoint endpoint;
  tracker::InstanceId instance = {};  // none where that is not known
};

struct GatherOptions {
  std::string cluster;
  // Of the scanner's own NamespaceRules. A peer with others may drop marks that this scanner needs.
  std::uint64_t rules_digest = 0;
  // The endpoint of the node itself, which may be another one next time: no gap when it leaves.
  std::string own_url;
  // Of the node itself. A scan that its daemon does not answer, by this name, is partial. Empty: not known.
  std::string own_name = {};
  // Reads the instance of the node's own daemon, once that has answered: another one under its name is a
  // failed peer, and so is one where this fails. None: not checked.
  std::function<base::Result<tracker::InstanceId>()> own_instance = {};
  // A cycle younger than this is joined rather than followed by a new one.
  std::chrono::milliseconds min_cycle_age{60'000};
  // Else the highest cycle is joined, however old it is: while somebody else opens the next one.
  bool may_open_cycle = true;
  // Spares the full walk for a peer never seen before, nor expected, that says its history is complete.
  bool trust_new_peers = false;
  // The level at which the trackers are to open the next cycle; 0 is no opinion.
  std::size_t start_level = 0;
  // Leaves the trackers as they are, the start level included: for a dry run.
  bool read_only = false;
  // Endpoints that a source of members listed once, and does not any more: their nodes may be down. Asked
  // like the others; but one that does not answer is of no account where the tracker that answered there
  // last is found at another endpoint.
  std::vector<Endpoint> lingering;
  // Peers that fail where no tracker of their name is found at any endpoint: at theirs, another one answered.
  std::vector<ExpectedPeer> expected;
  // Why marks may be missing that no peer tells of, in words.
  std::vector<std::string> known_gaps;
  // Sources of members that could not be asked, in words. Nobody is taken to be gone then, and the scan is
  // partial: somebody may be missing from the endpoints.
  std::vector<std::string> unknown_sources;
  // What all filters may take of memory. A peer whose answer would pass it is a gap.
  std::uint64_t marks_bytes_max = tracker::MarkSet::memory_bytes_max;
};

// What became of one peer; `name` is its URL where it never said its name.
struct PeerOutcome {
  std::string name;
  std::string url;
  bool ok = false;
  std::string error;
};

struct Gathered {
  // Everything that may have changed. A gap at the root stands in it as the tree mark "".
  tracker::MarkSet marks;
  // How many distinct items the peers sent, estimated: those of an answer that was too large included.
  double items = 0;
  // The cycle that all answers reach up to.
  tracker::CycleId cycle;
  // To be stored together with the walk's results: those of the peers that answered moved on, those
  // of the others as they were. One of no instance stands for a peer that was never read; where its
  // name is not known, under its URL. Under other URLs stands the instance that answered there last; with
  // cycle 1 where it is elsewhere now, and nobody answers there. Homes of names (peer/name_claims.h) as well.
  tracker::Cursors cursors;
  std::vector<PeerOutcome> peers;
  // As in GatherOptions: which peers they list is not known.
  std::vector<std::string> unknown_sources = {};
  // Of every endpoint that was asked: in `peers`, a node of several addresses stands once.
  AddressStates addresses;
  // Why everything has to be walked; empty where it need not.
  std::vector<std::string> gaps;
  // What an operator should know of, though nothing is missing: names that moved to another address.
  std::vector<std::string> warnings = {};

  // Whether every peer is known and answered; whether any answered.
  bool complete() const;
  bool any_answered() const;
};

// Asks all endpoints, the node's own among them, in two rounds: for their cycles, then for their
// marks up to a common one. A peer whose answer is too large for the transport (std::errc::message_size) is a
// gap, and is asked a third time, for its cycle alone. A peer found at two endpoints is asked once. A peer
// that fails keeps its cursor, so that its marks are walked another time. So does a name that is claimed by a
// peer which has no credential for it, while the address where it was found last does not respond. Needs no
// clock and no leader.
//
// Does no I/O: whoever drives it sends the requests of a round, and gives it what came of each, in any order;
// gather() does so over a transport. Holds one answer at a time beside what is merged. Not thread-safe.
class Gathering {
 public:
  Gathering(std::span<const Endpoint> endpoints, const tracker::Cursors& cursors, GatherOptions options);
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  ~Gathering();

  // The requests of the next round, once everything of the one before was taken; none when all is done.
  std::vector<HttpRequest> next_round();

  // What came of a request of this round, once for each.
  void take(std::size_t index, const base::Result<HttpResponse>& response);

  // After the last round; once.
  Gathered finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

Gathered gather(Transport& transport, std::span<const Endpoint> endpoints, const tracker::Cursors& cursors,
                const GatherOptions& options);

}  // namespace spoor::peer
