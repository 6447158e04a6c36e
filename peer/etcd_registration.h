#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "peer/absence_watch.h"
#include "peer/etcd_client.h"
#include "peer/etcd_roll.h"

namespace spoor::peer {

// Keeps one node registered in etcd, and knows the roll of its cluster. Driven by calls of refresh(): no
// timers, no threads. Not thread-safe; the client and the clock must outlive it.
class EtcdRegistration {
 public:
  struct Options {
    EtcdPlace place;
    RollMember self;
    std::chrono::seconds ttl{30};
    // A member that was seen dead for so long is taken from the roll, unless it answers.
    std::chrono::nanoseconds forget_after = std::chrono::hours(24);
    // Whether a daemon of this name answers at this URL.
    std::function<bool(const RollEntry&)> answers;
  };

  EtcdRegistration(EtcdClient& client, const base::Clock& clock, Options options);

  // So many absent members are asked in one refresh whether they live, each of them for as long as
  // `answers` takes.
  static constexpr std::size_t probes_max = 4;

  // Registers the node where it is not, keeps it alive, reads the roll, and takes from it who has to go. To
  // be called every third of `ttl`; again after a failure. On failure the roll stays as it was.
  base::Result<> refresh();

  // No longer alive, at once; it stays on the roll.
  base::Result<> leave(EtcdClient& client);

  // Whether the node was among the living less than `ttl` ago.
  bool is_registered() const;

  // Whether the roll lacked this node when it was read last, and it is not back on it.
  bool is_missing() const { return is_missing_; }

  // When etcd last confirmed the lease.
  std::optional<base::SteadyTime> confirmed_at() const { return confirmed_at_; }

  // As it was read last.
  const std::vector<RollEntry>& roll() const { return roll_.entries; }
  bool is_self(const RollEntry& entry) const;

  // Another living daemon that calls itself like this one, in words; empty where there is none.
  const std::string& conflict() const { return conflict_; }

  // Members that this node took from the roll in the last refresh().
  const std::vector<RollEntry>& struck() const { return struck_; }

 private:
  base::Result<> hold_lease();
  base::Result<> enter();
  base::Result<> read();
  base::Result<> check_self();
  base::Result<> strike_the_gone();

  EtcdClient& client_;
  const base::Clock& clock_;
  const Options options_;
  EtcdLease lease_;
  bool is_entered_ = false;
  bool is_missing_ = false;
  std::optional<base::SteadyTime> confirmed_at_;
  std::optional<EtcdRangeState> read_at_;
  Roll roll_;
  std::vector<RollEntry> struck_;
  std::string conflict_;
  AbsenceWatch absences_;
  std::size_t next_probe_ = 0;
};

}  // namespace spoor::peer
