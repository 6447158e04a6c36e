#pragma once

#include <chrono>
#include <vector>

#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"
#include "peer/membership/member_source.h"

namespace spoor::peer {

// The listing of a registry, with its gaps since `last`. `self` is the node that reads it: its own daemon is
// not listed, and its instance is not expected.
SourceListing to_listing(const Registry& registry, const EtcdLocation& location, const LastScan& last,
                         const RegisteredMember& self);

// The members that are registered in etcd. The client must outlive it.
class EtcdMembers final : public MemberSource {
 public:
  struct Options {
    EtcdLocation location;
    RegisteredMember self;
    std::chrono::milliseconds forget_after = std::chrono::hours(24);
  };

  EtcdMembers(EtcdClient& client, Options options);

  // A registry where no node has registered yet is a problem: it may be the wrong one.
  std::vector<SourceListing> list(const LastScan& last) override;

  // Whether etcd responded to the last list().
  bool has_responded() const { return has_responded_; }

 private:
  EtcdClient& client_;
  const Options options_;
  bool has_responded_ = false;
};

}  // namespace spoor::peer
