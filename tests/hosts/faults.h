// Makes links, daemons and memories fail at random, and repairs them.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/hosts/host.h"
#include "tests/hosts/knowledge.h"
#include "tests/hosts/ledger.h"
#include "tests/hosts/reachability.h"

namespace spoor::hosts {

// Used on one thread, which must outlive the daemons: they are killed when the thread that started them ends.
class Faults {
 public:
  Faults(Network& network, const Hosts& hosts, Knowledge& knowledge, Reachability& reachability,
         Ledger& ledger, support::Random& random);

  // Starts every daemon, and waits until each responds to every host.
  void start_all();

  // Runs until the given time: after some scans it ends one fault and begins another; from time to time there
  // is no fault for a while.
  void work(std::chrono::steady_clock::time_point until);

  void mend_all();

 private:
  // What works and what does not.
  struct Condition {
    explicit Condition(std::size_t hosts);
    bool reaches(std::size_t from, std::size_t to) const;

    std::vector<bool> answers;                // the daemon runs
    std::vector<bool> plugged;                // the link is up
    std::vector<bool> fast;                   // the link is not slowed down
    std::vector<std::vector<bool>> packets;   // from, to
    std::vector<std::vector<bool>> requests;  // from, to
  };
  struct Fault {
    std::string what;
    std::uint64_t steps_left;
    std::function<void()> mend;
  };

  void break_something();
  void break_daemon(Host& host);
  void break_cable(std::size_t host);
  void slow_down(std::size_t host);
  void break_way(std::size_t from, std::size_t to);
  void mend_what_is_due();

  void freeze(Host& host);
  void stop(Host& host);
  void kill(Host& host);
  void lose(Host& host);
  void take_down(Host& host, const std::string& how, const std::function<void()>& act,
                 std::function<void()> bring_back);
  void stay_broken(const std::string& what, std::function<void()> mend);

  // Calls `act`, after which the condition is `after`.
  void change(Condition after, const std::function<void()>& act);
  void wait_until_reached(std::size_t from, std::size_t to);

  Network& network_;
  const Hosts& hosts_;
  Knowledge& knowledge_;
  Reachability& reachability_;
  Ledger& ledger_;
  support::Random& random_;
  Condition condition_;
  std::vector<Fault> faults_;
};

}  // namespace spoor::hosts
