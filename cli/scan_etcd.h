#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cli/etcd_connection.h"
#include "config/config.h"
#include "peer/cycle_opener.h"
#include "peer/etcd_roll.h"
#include "peer/gather.h"
#include "peer/members.h"
#include "tracker/cursor.h"

namespace spoor::cli {

// etcd as one scan uses it: for the members, and for its turn in opening a cycle. Where `peers.etcd` is not
// set it lists nobody, and every scan has its turn.
//
// Not thread-safe. The clock must outlive it.
class ScanEtcd {
 public:
  ScanEtcd(const config::Config& config, const base::Clock& clock);
  ScanEtcd(const ScanEtcd&) = delete;
  ScanEtcd& operator=(const ScanEtcd&) = delete;
  ~ScanEtcd() { give_back(); }

  // Must not outlive this object.
  std::optional<peer::MemberRegistry> registry();

  // Once the registry was asked: who has to answer, and why marks may be missing that no peer tells of.
  // `position` is what the last scan stored.
  std::vector<peer::ExpectedPeer> expected() const;
  std::vector<std::string> gaps(const std::string& position, const tracker::Cursors& cursors) const;

  // So that those who do not answer use up no time that the others need.
  void put_dead_last(std::vector<peer::Endpoint>& endpoints) const;

  // What this scan is to store; that of the last one, where etcd did not answer.
  std::string position(const std::string& last) const;

  // Whether this scan may open a cycle; waits `peers.timeout` for its turn at the most.
  bool take_turn();
  void give_back();

 private:
  struct Connection : EtcdConnection {
    Connection(const config::Config& config, const base::Clock& clock);

    std::string own_name;
    std::string own_url;  // as others reach this node
    std::chrono::milliseconds forget_after;
    peer::CycleOpener opener;
    std::optional<peer::Roll> roll;  // none: it did not answer, and there is no use in waiting for that again
  };

  std::optional<Connection> connection_;
};

}  // namespace spoor::cli
