// What Spoor keeps in etcd: who belongs to a cluster.
//
//   <prefix>/<cluster>/members/<node>/<url>   the roll: whom every scan asks. Without a lease: a node that is
//                                             down stays on it, so that its marks are not forgotten.
//   <prefix>/<cluster>/alive/<node>/<url>     the same, under the node's lease: who lives.
//   <prefix>/<cluster>/ledger                 how many entered the roll, and who left it
//   (peer/roll_ledger.h). <prefix>/<cluster>/opener                 who opens a cycle at present
//   (peer/cycle_opener.h).
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
#include "peer/members.h"
#include "peer/roll_ledger.h"

namespace spoor::peer {

struct EtcdPlace {
  std::string prefix;
  std::string cluster;
};

struct RollEntry {
  RollMember member;
  Endpoint endpoint;
  std::int64_t mod_revision = 0;
  bool is_alive = false;
  EtcdLease lease{};  // of a living one

  friend bool operator==(const RollEntry&, const RollEntry&) = default;
};

struct Roll {
  std::vector<RollEntry> entries;
  RollLedger ledger;
  std::string cluster_id;     // of etcd
  std::int64_t revision = 0;  // of etcd, when it was read
};

// Of all its keys, with a / at the end.
std::string folder_of(const EtcdPlace& place);
std::string opener_key(const EtcdPlace& place);

// What read_roll() reads.
EtcdRange roll_range(const EtcdPlace& place);

// Puts the node on the roll and among the living, both or neither, as it has to be done to `roll`. Where it
// is on the roll already, its entry changes all the same: that is how a watcher sees that it was there in
// between. False where etcd no longer is as in `roll`: to be read and tried again.
base::Result<bool> enter_roll(EtcdClient& client, const EtcdPlace& place, const RollMember& member,
                              EtcdLease lease, const Roll& roll);

// Fails also where an entry can't be understood: whoever is behind it would not be asked.
base::Result<Roll> read_roll(EtcdClient& client, const EtcdPlace& place);

// Whom a scan asks: all of them, dead or alive. An address lingers where nobody is alive while its daemon
// lives at another one.
RegistryAnswer to_registry_answer(const Roll& roll);

// Whether the entry was taken from the roll, and entered in the ledger: only while both are as they were
// read, and the node is not alive.
base::Result<bool> strike_from_roll(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry,
                                    const RollLedger& ledger);

}  // namespace spoor::peer
