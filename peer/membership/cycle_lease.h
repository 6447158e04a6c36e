#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "base/clock.h"
#include "peer/membership/etcd_client.h"
#include "peer/membership/etcd_registry.h"

namespace spoor::peer {

// The cycle lease: a key in etcd, under a short lease, that lets one scan of the cluster at a time open a
// cycle. Other scans wait up to `wait_max`, which spreads the scans, and then join the current cycle.
// Correctness does not depend on it: two scans that open a cycle at once are redundant, and without etcd
// every scan may open one.
//
// Not thread-safe. The client and the clock must outlive it.
class CycleLease {
 public:
  struct Options {
    EtcdLocation location;
    std::string node;                      // the holder, shown by etcdctl
    std::chrono::seconds ttl{60};          // a holder that is killed blocks the others for this long
    std::chrono::milliseconds wait_max{};  // to acquire it
    std::uint64_t seed = 0;                // of the pauses between two attempts
    // Waits; returns false to stop waiting.
    std::function<bool(std::chrono::milliseconds)> wait = {};
  };

  CycleLease(EtcdClient& client, const base::Clock& clock, Options options);

  // Returns whether this scan may open a cycle: true also if etcd fails, false after `wait_max`.
  bool acquire();

  // To be called once the cycle is open. If the release fails, the lease expires.
  void release();

 private:
  base::Result<bool> try_once();
  std::chrono::milliseconds pause();

  EtcdClient& client_;
  const base::Clock& clock_;
  const Options options_;
  std::minstd_rand random_;
  EtcdLease lease_;
};

}  // namespace spoor::peer
