#pragma once

#include <chrono>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {

// A peer that a member source lists with its node name.
struct ExpectedPeer {
  std::string name;
  base::Endpoint endpoint;
  tracker::InstanceId instance = {};  // none: not known
};

// The state of the last stored scan.
struct LastScan {
  const tracker::Cursors& cursors;
  std::string checkpoint;  // SourceListing::checkpoint of that scan; empty: none
};

// The members in one source at one moment.
struct SourceListing {
  std::string source;               // "dns spoor.example:7420", "etcd": its name in reports and members.json
  std::vector<std::string> listed;  // URLs
  // URLs to request, where a failure counts only if the tracker that responded there last is not found at
  // another address.
  std::vector<std::string> departed = {};
  std::string problem = {};  // why members may be missing above; empty: none are
  // How long a URL that is no longer listed must be silent before it is evicted.
  std::chrono::milliseconds forget_after{0};
  // URLs that the source evicted, after they were silent: evicted here at their first silence.
  std::set<std::string> evicted = {};
  // Listed URLs whose daemons are not alive: requested last, so that their timeouts delay no other request.
  std::set<std::string> not_alive = {};
  std::vector<ExpectedPeer> expected = {};
  std::vector<std::string> gaps = {};  // why marks may be missing that no peer reports
  std::string checkpoint = {};         // to be stored with the scan; empty: as in LastScan
};

// DNS names or etcd. Not thread-safe.
class MemberSource {
 public:
  virtual ~MemberSource() = default;

  // Blocks until the source responds or times out; a failure is a `problem` of its listing. One listing for
  // each name that is configured.
  virtual std::vector<SourceListing> list(const LastScan& last) = 0;
};

// The URLs of the endpoints. An endpoint that its URL does not identify is left out, and becomes `problem` if
// that is empty.
std::vector<std::string> urls_of(std::span<const base::Endpoint> endpoints, std::string& problem);

}  // namespace spoor::peer
