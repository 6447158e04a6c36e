// The member registry in etcd. Keys:
//
//   <prefix>/<cluster>/members/<node>/<url>   a member, under a long lease: it stays while the node is down,
//   so
//                                             that scans request it, and read its marks later.
//   <prefix>/<cluster>/alive/<node>/<url>     the same value, under a short one.
//
// Earlier versions put members under no lease, and also have `ledger` and `opener`, which are ignored.
//
// Names and URLs are percent-encoded. The URL is part of the key, because a scan must request two daemons
// with a duplicate node name to detect them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/membership.h"

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
  EtcdLease lease{};  // of its key under `members`
  std::optional<EtcdLease> alive_lease = {};

  bool is_alive() const { return alive_lease.has_value(); }

  friend bool operator==(const RegistryEntry&, const RegistryEntry&) = default;
};

// The prefix of all its keys, with a trailing slash.
std::string key_prefix(const EtcdLocation& location);

// What read_registry() reads.
EtcdRange registry_range(const EtcdLocation& location);

// Registers the member, and as alive under `alive_lease`, if there is one, in one transaction.
base::Result<> register_member(EtcdClient& client, const EtcdLocation& location,
                               const RegisteredMember& member, EtcdLease lease,
                               std::optional<EtcdLease> alive_lease);

// Fails also if an entry is invalid: a scan would miss the member.
base::Result<std::vector<RegistryEntry>> read_registry(EtcdClient& client, const EtcdLocation& location);

// The listing of a registry. `own_url` is that of the node that reads it: its own daemon is not listed.
SourceListing to_listing(std::span<const RegistryEntry> registry, const std::string& own_url);

// The members that are registered in etcd now. A registry where no node has registered yet is a problem: it
// may be the wrong one.
SourceListing list_members(EtcdClient& client, const EtcdLocation& location, const std::string& own_url);

}  // namespace spoor::peer
