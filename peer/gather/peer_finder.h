// The first round of a gathering: which trackers are at the endpoints, and whose marks are read.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/gather.h"
#include "peer/http/transport.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::peer {

// A running tracker. Its name is a claim.
struct FoundPeer {
  std::string url;
  std::string name;
  tracker::InstanceId instance;
  std::uint64_t run = 0;
  bool is_proven = false;  // by a certificate that the operator's own authority issued for the name
  std::size_t index = 0;   // of its endpoint
  base::Endpoint endpoint;
  tracker::CycleId current;
  std::chrono::milliseconds age{};

  tracker::PeerId id() const { return {name, instance}; }
};

// A claim of a name is accepted if it is proven, or else if it comes from the name's home. Otherwise, a name
// that was read before moves only if its home is no longer listed or responds under another name, and the
// same is true of the address at which a source of members lists the name now; one that its source says is
// not alive does not keep the name from another listed one. The home of a name that was never read is where a
// source of members lists it; without a listing, the first claim is accepted.
//
// Not thread-safe.
class PeerFinder {
 public:
  // An endpoint where no tracker of the cluster responded.
  struct Silent {
    std::size_t index = 0;  // of the endpoint
    std::string url;
    bool is_listed = false;  // by a source of members; otherwise it is the home of a known peer
    bool is_alive = false;   // listed, and no source says that no daemon runs there
    std::string error;
    bool refuses = false;  // the credentials
  };

  // The book of the last stored scan, the options and `gathered` must outlive it.
  PeerFinder(const tracker::PeerBook& known, const GatherOptions& options, Gathered& gathered);

  // One for each endpoint: those of the members, then the homes of expected peers that no source lists.
  std::vector<HttpRequest> requests() const;
  void take(std::size_t index, const base::Result<HttpResponse>& response);

  // Once, after the results of all requests: decides which peers are read. Writes to `gathered` the peers
  // that are not read for another reason than silence, and what that means for their entries and the gaps.
  void decide();

  // Accepted, each once.
  const std::vector<FoundPeer>& found() const { return found_; }
  // The name belongs to an address that does not respond. Their marks are merged, no entry changes.
  const std::vector<FoundPeer>& disputed() const { return disputed_; }
  // They responded, and are not read: copies, and those out of reach.
  const std::set<tracker::PeerId>& refused() const { return refused_; }
  const std::vector<Silent>& silent() const { return silent_; }

 private:
  struct Name;

  Name name_of(const std::string& text) const;
  bool dispute(const Name& name, const std::vector<FoundPeer>& claims, bool is_one_listed);
  void judge(const Name& name, std::vector<FoundPeer> claims);
  void drop_copies();
  void drop_out_of_reach();

  const tracker::PeerBook& known_;
  const GatherOptions& options_;
  Gathered& gathered_;
  std::vector<base::Endpoint> endpoints_;
  std::set<std::string> listed_;   // URLs
  std::vector<FoundPeer> claims_;  // all that responded
  std::vector<FoundPeer> found_;
  std::vector<FoundPeer> disputed_;
  std::set<tracker::PeerId> refused_;
  std::vector<Silent> silent_;
};

}  // namespace spoor::peer
