// The member registry in etcd. Keys:
//
//   <prefix>/<cluster>/members/<node>/<url>   a member. Has no lease: it stays while the node is down, so
//                                             that scans request it, and read its marks later.
//   <prefix>/<cluster>/alive/<node>/<url>     the same value, under the lease of the node.
//   <prefix>/<cluster>/ledger                 the MembershipLog. The key keeps its former name for
//                                             compatibility.
//   <prefix>/<cluster>/opener                 the cycle lease (peer/membership/cycle_lease.h).
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

// Counts the members that joined and left the registry in etcd, so that a scan detects those that did both
// since the last one. Counters need no clock. Entries kept for a grace period after an eviction would need
// one: each scanner would compare the period with a clock that may jump. They would also not show entries
// that were erased by hand.
//
// Changed in the same transaction as the entries that it counts.
struct MembershipLog {
  static constexpr std::size_t recent_max = 100;

  std::string id;                        // random, drawn with the first entry; identifies the registry
  std::uint64_t entered = 0;             // entries ever made
  std::uint64_t left = 0;                // entries evicted, or replaced by another instance
  std::vector<RegisteredMember> recent;  // the last of those that left, newest last
  std::int64_t mod_revision = 0;         // of its key in etcd; 0: no key

  // With one more or one fewer entry. The first change draws the id.
  MembershipLog with_entry() const;
  MembershipLog without(const RegisteredMember& member) const;

  // The value in etcd; none: invalid.
  std::string to_value() const;
  static std::optional<MembershipLog> parse(std::string_view value);

  friend bool operator==(const MembershipLog&, const MembershipLog&) = default;
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

// A name of a node, which identifies its tracker, or of a cluster: printable ASCII without spaces and colons,
// 1 to 255 bytes.
bool is_node_name(std::string_view text);

}  // namespace spoor::peer
