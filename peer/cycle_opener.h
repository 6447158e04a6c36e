#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <random>
#include <string>

#include "base/clock.h"
#include "peer/etcd_client.h"
#include "peer/etcd_roll.h"

namespace spoor::peer {

// Lets one scan of the cluster at a time open a cycle, by a key in etcd under a short lease. The others wait
// a little for their turn, which spreads the scans, and then join the cycle there is. Nothing but economy
// depends on it: two that open a cycle at once are merely redundant, and without etcd everybody may.
//
// Not thread-safe. The client and the clock must outlive it.
class CycleOpener {
 public:
  struct Options {
    EtcdPlace place;
    std::string node;                      // who has it, for whoever looks into etcd
    std::chrono::seconds ttl{60};          // for how long it is had at the most
    std::chrono::milliseconds wait_max{};  // for one's turn
    std::uint64_t seed = 0;                // of the pauses between two attempts
    // Lets that much time pass; false where the wait is to be given up.
    std::function<bool(std::chrono::milliseconds)> wait = {};
  };

  CycleOpener(EtcdClient& client, const base::Clock& clock, Options options);

  // Whether this scan may open a cycle.
  bool take_turn();

  // For the next one, once the cycle is opened. What could not be given back ends with its lease.
  void give_back();

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
