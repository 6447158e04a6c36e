// Collects and merges the marks of the whole cluster for one scan (docs/cluster.md).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "peer/http/transport.h"
#include "peer/membership/membership.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/filter/mark_set.h"

namespace spoor::peer {

struct GatherOptions {
  // A member that fails makes the scan partial, as an unknown source does: no peer is evicted then that may
  // be listed there.
  MembershipView members = {};
  std::string cluster = {};
  // The endpoint of the node itself. It may differ in the next scan, and is no home.
  std::string own_url = {};
  // The name of the node itself; a scan that does not read its own daemon is partial. Empty: not known.
  std::string own_name = {};
  // The instance of the node's own daemon: a response under the own name from another one counts as a failure
  // of the peer. None: not checked.
  tracker::InstanceId own_instance = {};

  // Of the scanner's own NamespaceRules. A peer with other rules may ignore marks that this scanner needs.
  std::uint64_t rules_digest = 0;
  // The scan opens no new cycle while the highest one is younger than this.
  std::chrono::milliseconds min_cycle_age{60'000};
  // An expected peer that no source lists, and that was silent for so long, is gone: everything is walked,
  // once.
  std::chrono::milliseconds forget_after = std::chrono::hours(24);
  // Reads the node's own daemon alone. Entries of other peers change only by what its records say; so they
  // can be read again later, from their cycles on.
  bool own_only = false;
  // Whether a scan was stored before: its directories are known, even if it read no peer.
  bool has_scanned = false;
  // Adds to the silence of the peers that do not respond, at most a quarter of forget_after.
  std::chrono::milliseconds since_last_scan{0};
  // The level at which the trackers are to start the next cycle; 0: not known.
  std::size_t start_level = 0;
  // Changes nothing in the trackers, not even the start level: for a dry run.
  bool read_only = false;

  // The memory bound for all merged filters. A peer whose response exceeds it is a gap.
  std::uint64_t marks_bytes_max = tracker::MarkSet::memory_bytes_max;
};

// The result for one peer; `name` is its URL if its name is not known.
struct PeerOutcome {
  std::string name;
  std::string url;
  bool ok = false;
  std::string error;
};

struct Gathered {
  // Everything that may have changed, with the filters packed as the peers sent them. A gap over the whole
  // namespace is the tree mark "".
  tracker::MarkSet marks;
  // The estimated number of distinct items that the peers sent, including responses that were too large to
  // merge.
  double items = 0;
  // The common cycle: the responses contain marks up to it.
  tracker::CycleId cycle;
  // To be stored together with the results of the walk: advanced for the peers that responded; with those
  // that joined, according to the records of the others.
  tracker::PeerBook book;
  std::vector<PeerOutcome> peers;
  // As in GatherOptions.
  std::vector<std::string> unknown_sources = {};
  // Why everything must be walked; empty if a full walk is not necessary.
  std::vector<std::string> gaps;
  // For the operator, without loss of marks: names that moved to another address.
  std::vector<std::string> warnings = {};

  // Whether all peers are known and responded; whether any responded.
  bool complete() const;
  bool any_answered() const;
};

// Queries all endpoints, including the node's own, in two rounds: for their cycles, then for their marks up
// to a common cycle. A peer whose response is too large for the transport (std::errc::message_size) is a gap;
// a third round queries its cycle alone. A peer at two endpoints is queried for marks once. A peer that fails
// keeps its cycle, so that a later scan walks its marks. So does a name that is claimed by a peer without a
// credential for it, while the address where it was found last does not respond. A peer that was never read
// is read from its birth on. Needs no clock and no leader.
//
// Does no I/O: the caller sends the requests of a round and passes each result to take(), in any order;
// gather() does so over a transport. Holds one response at a time in addition to the merged marks. Not
// thread-safe.
class Gathering {
 public:
  Gathering(const tracker::PeerBook& known, GatherOptions options);
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;
  ~Gathering();

  // The requests of the next round; empty after the last round. All results of the previous round must have
  // been passed to take().
  std::vector<HttpRequest> next_round();

  // Takes the result of a request of this round; once for each request.
  void take(std::size_t index, const base::Result<HttpResponse>& response);

  // To be called once, after the last round.
  Gathered finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

Gathered gather(Transport& transport, const tracker::PeerBook& known, const GatherOptions& options);

}  // namespace spoor::peer
