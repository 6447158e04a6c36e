// The members of the cluster: the merged listings of all sources (docs/cluster.md).
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "peer/membership/member_source.h"

namespace spoor::peer {

struct MembershipView {
  std::vector<base::Endpoint> endpoints;  // the own one first, each once, those that are not alive last
  std::map<std::string, std::set<std::string>> listed_homes;  // the URLs at which sources list nodes, by name
  std::set<std::string> not_alive;
  std::map<tracker::PeerId, bool> registered;  // SourceListing::registered
  std::vector<std::string> unknown_sources;    // sources that failed, and why: members may be missing
  std::set<std::string> named_urls;            // the own endpoint and `peers.static`: named by the operator
};

// `own`: of the node's own daemon.
MembershipView merge_members(const std::optional<base::Endpoint>& own,
                             std::span<const base::Endpoint> static_endpoints,
                             std::span<const SourceListing> listings);

}  // namespace spoor::peer
