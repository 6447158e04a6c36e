// What Spoor keeps in etcd: who belongs to a cluster.
//
//   <prefix>/<cluster>/members/<node>/<url>   the roll: whom every scan asks. Without a lease: a node that is
//                                             down stays on it, so that its marks are not forgotten.
//   <prefix>/<cluster>/alive/<node>/<url>     the same, under the node's lease: who lives.
//   <prefix>/<cluster>/forgotten              who was struck from the roll (peer/etcd_forgotten.h).
//   <prefix>/<cluster>/opener                 who opens a cycle at present (peer/cycle_opener.h).
//
// Names and URLs are percent-encoded. The URL is a part of the key because two living daemons under one
// name must both be asked: that is how a scan finds out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "peer/endpoint.h"
#include "peer/etcd_client.h"
#include "peer/etcd_forgotten.h"
#include "peer/members.h"

namespace spoor::peer {

struct EtcdPlace {
  std::string prefix;
  std::string cluster;
};

struct RollMember {
  std::string node;
  std::string url;  // as others reach it
  std::string instance;

  friend bool operator==(const RollMember&, const RollMember&) = default;
};

struct RollEntry {
  RollMember member;
  Endpoint endpoint;
  std::int64_t mod_revision = 0;
  bool is_alive = false;
  EtcdLease lease{};  // of a living one
};

struct Roll {
  std::vector<RollEntry> entries;
  Forgotten forgotten;
  std::string cluster_id;     // of etcd
  std::int64_t revision = 0;  // of etcd, when it was read
};

// Of all its keys, with a / at the end.
std::string folder_of(const EtcdPlace& place);
std::string opener_key(const EtcdPlace& place);

// What read_roll() reads.
EtcdRange roll_range(const EtcdPlace& place);

// Puts the node on the roll and among the living, both or neither. Where it is on the roll already, its
// entry changes all the same: that is how a watcher sees that it was there in between.
base::Result<> enter_roll(EtcdClient& client, const EtcdPlace& place, const RollMember& member,
                          EtcdLease lease);

// Fails also where an entry can't be understood: whoever is behind it would not be asked.
base::Result<Roll> read_roll(EtcdClient& client, const EtcdPlace& place);

// Whom a scan asks: all of them, dead or alive. An address lingers where nobody is alive while its node lives
// at another one.
RegistryAnswer to_registry_answer(const Roll& roll);

// Whether the entry was taken from the roll, and its node is counted among the forgotten now: only while both
// are as they were read, and the node is not alive.
base::Result<bool> strike_from_roll(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry,
                                    const Forgotten& forgotten);

// The same of an address that its node has left for another one on the roll: the node is not forgotten.
base::Result<bool> strike_address(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry);

}  // namespace spoor::peer
