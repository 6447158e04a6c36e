// Applications: they change the drives of the hosts, and send the marks to any daemon that responds.
#pragma once

#include <atomic>
#include <string>

#include "tests/hosts/host.h"
#include "tests/hosts/knowledge.h"
#include "tests/hosts/ledger.h"

namespace spoor::hosts {

// Thread-safe: any number of threads may call work().
class Writers {
 public:
  Writers(const Hosts& hosts, Knowledge& knowledge, Ledger& ledger)
      : hosts_(hosts), knowledge_(knowledge), ledger_(ledger) {}

  // Runs until stop(), and then until all of its changes are acknowledged.
  void work(support::Random random);
  void stop() { stopping_ = true; }

 private:
  void change(Host& host, support::Random& random);
  void mark(const Host& changed, const std::string& lines, support::Random& random);
  bool try_to_mark(const Host& at, const std::string& lines, support::Random& random);

  const Hosts& hosts_;
  Knowledge& knowledge_;
  Ledger& ledger_;
  std::atomic<bool> stopping_ = false;
};

}  // namespace spoor::hosts
