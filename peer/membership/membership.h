// The members of the cluster: the merged listings of all sources (docs/cluster.md).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::peer {

// The members in one source at one moment.
struct SourceListing {
  std::string source;               // "dns spoor.example:7420", "etcd": its name in reports
  std::vector<std::string> listed;  // URLs
  std::string problem = {};         // why members may be missing above; empty: none are
  // Listed URLs whose daemons are not alive: requested last, so that their timeouts delay no other request.
  std::set<std::string> not_alive = {};
  // The URLs at which nodes are listed, by name; empty if the source knows no names.
  std::map<std::string, std::set<std::string>> homes = {};
  // Those that have registered, and whether they are alive: each may have acknowledged marks.
  std::map<tracker::PeerId, bool> registered = {};
};

// DNS names. Thread-safe.
class MemberSource {
 public:
  virtual ~MemberSource() = default;

  // Blocks until the source responds or times out; a failure is a `problem` of its listing. One listing for
  // each name that is configured.
  virtual std::vector<SourceListing> list() = 0;
};

struct MembershipView {
  std::vector<base::Endpoint> endpoints;  // the own one first, each once, those that are not alive last
  std::map<std::string, std::set<std::string>> listed_homes;  // the URLs at which sources list nodes, by name
  std::set<std::string> not_alive;
  std::map<tracker::PeerId, bool> registered;  // SourceListing::registered
  std::vector<std::string> unknown_sources;    // sources that failed, and why: members may be missing
  std::set<std::string> named_urls;            // the own endpoint and `peers.static`: named by the operator
};

// The URLs of the endpoints. An endpoint that its URL does not identify is left out, and becomes `problem` if
// that is empty.
std::vector<std::string> urls_of(std::span<const base::Endpoint> endpoints, std::string& problem);

// `own`: of the node's own daemon.
MembershipView merge_members(const std::optional<base::Endpoint>& own,
                             std::span<const base::Endpoint> static_endpoints,
                             std::span<const SourceListing> listings);

}  // namespace spoor::peer
