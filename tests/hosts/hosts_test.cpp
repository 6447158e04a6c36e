// Hosts with their own networks, drives and daemons, written to and scanned while links go down, routes are
// cut, daemons are killed and disks are lost. No acknowledged change may be missed, and only a loss may cause
// a full walk.
//
// Runs for SPOOR_HOSTS_SECONDS (40). The seed decides the faults, not their timing.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/hosts/faults.h"
#include "tests/hosts/scans.h"
#include "tests/hosts/writers.h"
#include "tests/support/temp_directory.h"

namespace spoor::hosts {
namespace {

constexpr std::size_t host_count = 5;
constexpr std::size_t drive_count = 2;
constexpr int last_scans_max = 50;  // each may be partial because of a slow response

std::chrono::seconds duration() {
  const char* given = std::getenv("SPOOR_HOSTS_SECONDS");
  return std::chrono::seconds(given == nullptr ? 40 : std::strtoll(given, nullptr, 10));
}

Hosts make_hosts(const Network& network, const std::filesystem::path& directory, support::Random& random) {
  Hosts hosts;
  for (std::size_t i = 0; i < host_count; ++i) {
    hosts.push_back(std::make_unique<Host>(network, i, host_count, directory, drive_count, random));
  }
  return hosts;
}

class HostsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (auto why = why_no_network(); !why.empty()) GTEST_SKIP() << why;
  }
};

// Everything that the test needs, in the order of construction.
class Trial {
 public:
  explicit Trial(support::Random& random) : random_(random) {}

  void go() {
    try {
      faults_.start_all();
      for (const auto& host : hosts_) scans_.scan(*host);
      break_and_mend();
      scan_to_completeness();
    } catch (const std::exception& error) {
      ledger_.violated(error.what());
    }
  }

  // The last lines of each daemon's log.
  std::string newest_of_logs() const {
    constexpr std::size_t bytes_max = 2000;
    std::string text;
    for (const auto& host : hosts_) {
      const std::string log = host->log();
      const std::size_t cut = log.find('\n', log.size() - std::min(log.size(), bytes_max));
      text += "The log of " + host->name() + " ends with:" + log.substr(cut == log.npos ? 0 : cut) + '\n';
    }
    return text;
  }

  const Ledger& ledger() const { return ledger_; }

 private:
  void break_and_mend() {
    const auto until = std::chrono::steady_clock::now() + duration();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
      threads.emplace_back([this, random = random_.fork()] { writers_.work(random); });
      threads.emplace_back([this, random = random_.fork()] { scans_.work(random); });
    }
    try {
      faults_.work(until);
      faults_.mend_all();  // first, so that pending marks can be acknowledged
    } catch (const std::exception& error) {
      ledger_.violated(error.what());  // otherwise the threads would not stop
    }
    writers_.stop();
    scans_.stop();
  }

  void scan_to_completeness() {
    for (const auto& host : hosts_) {
      bool complete = false;
      for (int i = 0; i < last_scans_max && !complete && !ledger_.is_violated(); ++i) {
        complete = scans_.scan(*host);
      }
      if (ledger_.is_violated()) return;
      if (!complete) ledger_.violated(host->name() + " has no complete scan, although nothing is broken");
    }
  }

  support::Random& random_;
  Ledger ledger_;
  Knowledge knowledge_{host_count};
  Reachability reachability_{host_count};
  support::TempDirectory directory_;
  Network network_{host_count};
  Hosts hosts_ = make_hosts(network_, directory_.path(), random_);
  Writers writers_{hosts_, knowledge_, ledger_};
  Scans scans_{hosts_, knowledge_, reachability_, ledger_};
  Faults faults_{network_, hosts_, knowledge_, reachability_, ledger_, random_};
};

TEST_F(HostsTest, RandomFaults_HideNoAcknowledgedChangeAndCostNoFullWalk) {
  SPOOR_RANDOM(random);
  Trial trial(random);
  trial.go();
  std::cout << "[ FIGURES  ] " << trial.ledger().figures() << std::endl;
  if (!trial.ledger().is_violated()) return;
  ADD_FAILURE() << trial.ledger().violation() << "\nThe newest events, in seconds from the start:\n"
                << trial.ledger().newest_events() << trial.newest_of_logs();
}

}  // namespace
}  // namespace spoor::hosts
