// The member registry in etcd. Keys:
//
//   <prefix>/<cluster>/members/<node>/<url>   a member. Has no lease: it stays while the node is down, so
//                                             that scans request it, and read its marks later.
//   <prefix>/<cluster>/alive/<node>/<url>     the same value, under the lease of the node.
//
// Earlier versions also have `ledger` and `opener`, which are ignored.
//
// Names and URLs are percent-encoded. The URL is part of the key, because a scan must request two daemons
// with a duplicate node name to detect them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/membership/etcd_client.h"

namespace spoor::peer {

struct EtcdLocation {
  std::string prefix;
  std::string cluster;
};

// A daemon as it registers.
struct RegisteredMember {
  std::string node;
  std::string url;  // as others reach it
  std::string instance;

  friend bool operator==(const RegisteredMember&, const RegisteredMember&) = default;
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
};

// The prefix of all its keys, with a trailing slash.
std::string key_prefix(const EtcdLocation& location);

// What read_registry() reads.
EtcdRange registry_range(const EtcdLocation& location);

// Registers the member as alive, under the lease, in one transaction. `registry` is the one read last. An
// entry that exists is written again, so that a reader detects that the member was alive in between. Returns
// false if etcd has changed since `registry` was read: read it again and retry.
base::Result<bool> register_member(EtcdClient& client, const EtcdLocation& location,
                                   const RegisteredMember& member, EtcdLease lease, const Registry& registry);

// Fails also if an entry is invalid: a scan would miss the member.
base::Result<Registry> read_registry(EtcdClient& client, const EtcdLocation& location);

// Evicts the entry. Returns false, changing nothing, if it has changed since it was read, or the node is
// alive.
base::Result<bool> evict_member(EtcdClient& client, const EtcdLocation& location, const RegistryEntry& entry);

}  // namespace spoor::peer
