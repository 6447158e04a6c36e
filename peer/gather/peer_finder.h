// The first round of a gathering: which trackers are at the endpoints, and whose marks are read.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/gather.h"
#include "peer/gather/name_claims.h"
#include "peer/http/transport.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {

// In the cursor of an address (otherwise 0): the tracker that responded there last is elsewhere, and a later
// one has not responded yet. In that of a name without an instance: the peer was expected, and not found.
inline constexpr tracker::CycleId unknown_since{1};

// A running tracker.
struct FoundPeer : NameClaim {
  std::size_t index = 0;  // of its endpoint
  base::Endpoint endpoint;
  tracker::CycleId current;
  std::chrono::milliseconds age{};
};

// Not thread-safe.
class PeerFinder {
 public:
  // The cursors of the last stored scan, the options and `gathered` must outlive it.
  PeerFinder(const tracker::Cursors& known, const GatherOptions& options, Gathered& gathered);

  // One for each endpoint.
  std::vector<HttpRequest> requests() const;
  void take(std::size_t index, const base::Result<HttpResponse>& response);

  // Once, after the results of all requests: decides which peers are read. Writes to `gathered` the states of
  // the addresses, the peers that failed, and what that means for the cursors and the gaps.
  void decide();

  // Accepted, each once.
  const std::vector<FoundPeer>& found() const { return found_; }
  // Their marks are merged, no cursor moves.
  const std::vector<FoundPeer>& disputed() const { return disputed_; }

  bool is_endpoint(const std::string& url) const { return urls_.contains(url); }
  // The name of the node that responded there.
  std::optional<std::string> node_at(const std::string& url) const;

 private:
  struct Silent {
    std::size_t index = 0;  // of the endpoint
    std::string error;
  };

  void apply_verdicts();
  void apply_verdict(const FoundPeer& claim, const JudgedClaim& judged);
  std::map<std::string, std::set<std::string>> listed_homes() const;
  std::set<std::string> listed_silent() const;
  void remember_disputed(const FoundPeer& claim);
  void take_address(const FoundPeer& peer);

  void resolve_silent();
  void resolve_departed(const std::string& url);
  void remember_silent(const std::string& url);
  void remember_unread(const std::string& name_or_url);
  // Whether the tracker that responded at the URL last is one of `peers`, at another endpoint.
  bool is_among(const std::vector<FoundPeer>& peers, const std::string& url) const;

  void miss_expected();
  bool is_found(const ExpectedPeer& expected) const;
  bool has_duplicate_name(const ExpectedPeer& expected) const;

  void drop_duplicate_names();
  void drop_out_of_reach();
  tracker::CycleId highest_of_others(const FoundPeer& peer) const;

  void report(const std::string& name, const std::string& url, const std::string& error);

  const tracker::Cursors& known_;
  const GatherOptions& options_;
  Gathered& gathered_;
  std::vector<base::Endpoint> endpoints_;  // departed ones last
  std::set<std::string> urls_;             // of them
  std::size_t first_departed_ = 0;
  std::vector<FoundPeer> claims_;  // all that responded
  std::vector<FoundPeer> found_;
  std::vector<FoundPeer> disputed_;
  std::vector<Silent> silent_;
  std::map<std::string, std::string> names_;  // of the nodes that responded, by URL
};

}  // namespace spoor::peer
