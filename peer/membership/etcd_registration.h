#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::peer {

// Keeps one node registered in etcd, and reads the registry of its cluster. Driven by calls of refresh(): no
// timers, no threads. Not thread-safe; the client and the clock must outlive it.
class EtcdRegistration {
 public:
  struct Options {
    EtcdLocation location;
    RegisteredMember self;
    std::chrono::seconds ttl{30};
    // A member that is not alive for this long is evicted, unless it responds.
    std::chrono::nanoseconds forget_after = std::chrono::hours(24);
    // Whether a daemon of this name responds at this URL.
    std::function<bool(const RegistryEntry&)> answers;
  };

  EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options);

  // Bounds the absent members that one refresh probes with `answers`, one after another.
  static constexpr std::size_t probes_max = 4;

  // Registers the node if needed, keeps its lease alive, reads the registry and evicts absent members. To be
  // called every third of `ttl`; again after a failure, which leaves registry() unchanged.
  base::Result<> refresh();

  // Revokes the lease: the node is not alive, and stays in the registry.
  base::Result<> leave(EtcdClient& client);

  // Whether the node was alive in etcd less than `ttl` ago.
  bool is_registered() const;

  // Whether the registry lacked this node when it was read last, and it is not registered again.
  bool is_missing() const { return is_missing_; }

  // When etcd last confirmed the lease.
  std::optional<base::SteadyTime> confirmed_at() const { return confirmed_at_; }

  // The registry as it was read last.
  const std::vector<RegistryEntry>& registry() const { return registry_.entries; }
  bool is_self(const RegistryEntry& entry) const;

  // The error message for another live daemon with a duplicate node name; empty: none.
  const std::string& conflict() const { return conflict_; }

  // Members that this node evicted in the last refresh().
  const std::vector<RegistryEntry>& evicted() const { return evicted_; }

 private:
  struct Absence {
    std::int64_t mod_revision = 0;
    std::chrono::nanoseconds length{};
  };

  base::Result<> hold_lease();
  base::Result<> enter();
  base::Result<> read();
  base::Result<> check_self();
  std::vector<RegistryEntry> absent_members();
  base::Result<> evict_absent();

  EtcdClient& client_;
  const base::Clock& clock_;
  const Options options_;
  EtcdLease lease_;
  bool is_entered_ = false;
  bool is_missing_ = false;
  std::optional<base::SteadyTime> confirmed_at_;
  std::optional<EtcdRangeState> read_at_;
  Registry registry_;
  std::vector<RegistryEntry> evicted_;
  std::string conflict_;
  // How long each member in the registry has not been alive, as this node has observed: by node and URL.
  std::map<std::string, Absence> absences_;
  std::optional<base::SteadyTime> last_look_;
  std::size_t next_probe_ = 0;
};

}  // namespace spoor::peer
