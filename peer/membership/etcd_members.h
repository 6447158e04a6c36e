#pragma once

#include <string>
#include <vector>

#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"
#include "peer/membership/member_source.h"

namespace spoor::peer {

// The listing of a registry. `own_url` is that of the node that reads it: its own daemon is not listed.
SourceListing to_listing(const Registry& registry, const std::string& own_url);

// The members that are registered in etcd. The client must outlive it.
class EtcdMembers final : public MemberSource {
 public:
  EtcdMembers(EtcdClient& client, EtcdLocation location, std::string own_url);

  // A registry where no node has registered yet is a problem: it may be the wrong one.
  std::vector<SourceListing> list() override;

 private:
  EtcdClient& client_;
  const EtcdLocation location_;
  const std::string own_url_;
};

}  // namespace spoor::peer
