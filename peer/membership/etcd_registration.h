#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::peer {

// Keeps one node registered in etcd, and reads the registry of its cluster. etcd itself forgets a member that
// no daemon registers for `forget_after`. Driven by calls of refresh(): no timers, no threads. Not
// thread-safe; the client and the clock must outlive it.
class EtcdRegistration {
 public:
  struct Options {
    EtcdLocation location;
    RegisteredMember self;
    std::chrono::seconds ttl{30};
    std::chrono::seconds forget_after = std::chrono::hours(24);
  };

  EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options);

  // Registers the node if needed, keeps its leases alive and reads the registry. To be called every third of
  // `ttl`; again after a failure, which leaves registry() unchanged.
  base::Result<> refresh();

  // The node is not alive, and stays in the registry.
  base::Result<> leave(EtcdClient& client);

  // The node is in the registry no more.
  base::Result<> remove(EtcdClient& client);

  // Whether the node was alive in etcd less than `ttl` ago.
  bool is_registered() const;

  // When etcd last confirmed that the node is in the registry.
  std::optional<base::SteadyTime> confirmed_at() const { return confirmed_at_; }

  // The registry as it was read last.
  const std::vector<RegistryEntry>& registry() const { return registry_; }
  bool is_self(const RegistryEntry& entry) const;

  // The error message for another live daemon with a duplicate node name; empty: none.
  const std::string& conflict() const { return conflict_; }

 private:
  base::Result<> hold(EtcdLease& lease, std::chrono::seconds ttl);
  base::Result<> read();
  base::Result<> check_self();
  base::Result<> bound_old_entries();

  EtcdClient& client_;
  const base::Clock& clock_;
  const Options options_;
  EtcdLease lease_;
  EtcdLease alive_lease_;
  std::optional<base::SteadyTime> confirmed_at_;
  std::optional<EtcdRangeState> read_at_;
  std::vector<RegistryEntry> registry_;
  std::string conflict_;
};

}  // namespace spoor::peer
