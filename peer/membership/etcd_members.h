#pragma once

#include <string>

#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"
#include "peer/membership/member_source.h"

namespace spoor::peer {

// The listing of a registry. `own_url` is that of the node that reads it: its own daemon is not listed.
SourceListing to_listing(const Registry& registry, const std::string& own_url);

// The members that are registered in etcd now. A registry where no node has registered yet is a problem: it
// may be the wrong one.
SourceListing list_members(EtcdClient& client, const EtcdLocation& location, const std::string& own_url);

}  // namespace spoor::peer
