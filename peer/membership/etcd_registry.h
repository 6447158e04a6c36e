// The member registry in etcd. Keys:
//
//   <prefix>/<cluster>/members/<node>/<url>   a member. Has no lease: it stays while the node is down, so
//                                             that scans request it, and read its marks later.
//   <prefix>/<cluster>/alive/<node>/<url>     the same value, under the lease of the node.
//   <prefix>/<cluster>/ledger                 the membership log (peer/membership/membership_log.h). The key
//                                             keeps its former name for compatibility.
//   <prefix>/<cluster>/opener                 the cycle lease (peer/membership/cycle_lease.h).
//
// Names and URLs are percent-encoded. The URL is part of the key, because a scan must request two daemons
// with a duplicate node name to detect them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/membership_log.h"

namespace spoor::peer {

struct EtcdLocation {
  std::string prefix;
  std::string cluster;
};

struct RegistryEntry {
  RegisteredMember member;
  base::Endpoint endpoint;
  std::int64_t mod_revision = 0;
  bool is_alive = false;
  EtcdLease lease{};  // of its key under `alive`

  friend bool operator==(const RegistryEntry&, const RegistryEntry&) = default;
};

struct Registry {
  std::vector<RegistryEntry> entries;
  MembershipLog log;
  std::string cluster_id;     // of etcd
  std::int64_t revision = 0;  // of etcd, when it was read
};

// The prefix of all its keys, with a trailing slash.
std::string key_prefix(const EtcdLocation& location);
std::string cycle_lease_key(const EtcdLocation& location);

// What read_registry() reads.
EtcdRange registry_range(const EtcdLocation& location);

// Registers the member as alive, under the lease, in one transaction. `registry` is the one read last. An
// entry that exists is written again, so that a reader detects that the member was alive in between. Returns
// false if etcd has changed since `registry` was read: read it again and retry.
base::Result<bool> register_member(EtcdClient& client, const EtcdLocation& location,
                                   const RegisteredMember& member, EtcdLease lease, const Registry& registry);

// Fails also if an entry is invalid: a scan would miss the member.
base::Result<Registry> read_registry(EtcdClient& client, const EtcdLocation& location);

// Evicts the entry and records that in the membership log. Returns false, changing nothing, if one of them
// has changed since it was read, or the node is alive.
base::Result<bool> evict_member(EtcdClient& client, const EtcdLocation& location, const RegistryEntry& entry,
                                const MembershipLog& log);

}  // namespace spoor::peer
