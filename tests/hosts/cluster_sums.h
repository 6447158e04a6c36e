// Asks the hosts for the totals of the cluster, and checks these against what each of them has stored.
#pragma once

#include <atomic>
#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/hosts/host.h"
#include "tests/hosts/ledger.h"
#include "tests/hosts/reachability.h"

namespace spoor::hosts {

// Used on one thread, and by another one after stop().
class ClusterSums {
 public:
  ClusterSums(const Hosts& hosts, const Reachability& reachability, Ledger& ledger)
      : hosts_(hosts), reachability_(reachability), ledger_(ledger) {}

  // Asks a random host from time to time, until stop(). No drive changes meanwhile, and no scan runs: that
  // the last scan has stored what is on the drives is checked by Scans.
  void work(support::Random random);
  void stop() { stopping_ = true; }

  // To be called when nothing is broken, and each host was scanned after its last change: the sums are those
  // of all drives.
  void check_all();

 private:
  struct Answer {
    const Host& asked;
    support::CommandResult result;
    nlohmann::json report;
    Reachability::View before;
    Reachability::View after;
    std::vector<bool> added;  // by host
  };

  Answer ask(const Host& host);
  void judge(Answer& answer);
  bool read_nodes(Answer& answer);
  void judge_node(const Answer& answer, const nlohmann::json& node, const Host& host);
  void violated(const Answer& answer, const std::string& what);

  const Hosts& hosts_;
  const Reachability& reachability_;
  Ledger& ledger_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace spoor::hosts
