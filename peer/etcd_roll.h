// What Spoor keeps in etcd: who belongs to a cluster.
//
//   <prefix>/<cluster>/members/<node>/<url>   the roll: whom every scan asks. Without a lease: a node that is
//                                             down stays on it, so that its marks are not forgotten.
//   <prefix>/<cluster>/alive/<node>/<url>     the same, under the node's lease: who lives.
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

std::string opener_key(const EtcdPlace& place);

// What read_roll() reads.
EtcdRange roll_range(const EtcdPlace& place);

// Puts the node on the roll and among the living, both or neither. Where it is on the roll already, its
// entry changes all the same: that is how a watcher sees that it was there in between.
base::Result<> enter_roll(EtcdClient& client, const EtcdPlace& place, const RollMember& member,
                          EtcdLease lease);

// Fails also where an entry can't be understood: whoever is behind it would not be asked.
base::Result<std::vector<RollEntry>> read_roll(EtcdClient& client, const EtcdPlace& place);

// Whether the entry was taken from the roll: only as it was read, and while its node is not alive.
base::Result<bool> strike_from_roll(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry);

// Where the members of the cluster are, dead or alive: whom a scan has to ask.
base::Result<std::vector<Endpoint>> list_members(EtcdClient& client, const EtcdPlace& place);

}  // namespace spoor::peer
