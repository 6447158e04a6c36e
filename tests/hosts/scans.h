// Scans the hosts and checks each scan against Spoor's promise.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/hosts/host.h"
#include "tests/hosts/knowledge.h"
#include "tests/hosts/ledger.h"
#include "tests/hosts/reachability.h"

namespace spoor::hosts {

// Thread-safe: any number of threads may call work().
class Scans {
 public:
  Scans(const Hosts& hosts, Knowledge& knowledge, const Reachability& reachability, Ledger& ledger);

  // Scans one host after the other until stop().
  void work(support::Random random);
  void stop() { stopping_ = true; }

  // Runs one scan and returns whether it was complete. Writers to its drives wait.
  bool scan(Host& host);

 private:
  // A scan that has ended.
  struct Ended {
    Host& host;
    support::CommandResult result;
    Knowledge::Reading reading;
    Reachability::View before;
    Reachability::View after;
    nlohmann::json report;
    std::vector<bool> answered;
    bool has_met_former = false;  // a former memory of a peer, see Knowledge
  };

  bool judge(Ended& ended);
  void judge_failure(const Ended& ended);
  bool read_peers(Ended& ended);
  void judge_peer(const Ended& ended, const nlohmann::json& peer, std::size_t index);
  void judge_mode(const Ended& ended, const Knowledge::Expected& expected);
  void judge_gap(const Ended& ended, const std::string& gap, const Knowledge::Expected& expected);
  void judge_totals(const Ended& ended);
  void note(const Ended& ended);
  void violated(const Ended& ended, const std::string& what);

  const Hosts& hosts_;
  Knowledge& knowledge_;
  const Reachability& reachability_;
  Ledger& ledger_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace spoor::hosts
