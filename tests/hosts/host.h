// One host of the network: its spoord, its drives, and a writer for them.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/hosts/network.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/tree_totals.h"
#include "tests/support/tree_writer.h"

namespace spoor::hosts {

// Exit codes of `spoor`.
inline constexpr int exit_done = 0;
inline constexpr int exit_failed = 1;
inline constexpr int exit_in_part = 3;

// Of a peer that is reachable, and slow: the test does not judge response times.
inline constexpr const char* too_slow = "no answer in time";

enum class Loss { data_dir, data_dir_and_snapshots, data_dir_and_all_on_drives };

// The daemon is used on one thread; the drives are used by the thread that holds still().
class Host {
 public:
  Host(const Network& network, std::size_t index, std::size_t hosts, const std::filesystem::path& directory,
       std::size_t drives, support::Random& random);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  std::size_t index() const { return index_; }
  const std::string& name() const { return name_; }
  std::string url() const { return "http://" + Network::address(index_) + ":7420"; }
  std::string socket_url() const { return "unix:" + socket_.native(); }

  void start();  // throws if it does not start
  int stop();    // SIGTERM; returns the exit code
  void kill();
  void freeze() { daemon_->freeze(); }
  void thaw() { daemon_->signal(SIGCONT); }
  void lose(Loss loss);  // while it is down
  std::string log() const { return daemon_ ? daemon_->log() : std::string(); }

  // `spoor --config <its own> ARGUMENTS` in its network.
  support::CommandResult spoor(std::vector<std::string> arguments, const std::string& input = {}) const;

  // Whether a scan was committed: one that fails before leaves a database without any.
  bool has_scan() const;
  // The totals in its database, and the true totals of its drives.
  support::TreeTotals stored_totals() const;
  support::TreeTotals true_totals() const { return support::walk_independently(drives_); }

  // Held by a writer to its drives until its change is acknowledged, and by its scans.
  std::mutex& still() { return still_; }
  support::TreeWriter& some_writer(support::Random& random) {
    return writers_[random.below(writers_.size())];
  }

 private:
  void write_config(std::size_t hosts) const;

  const Network& network_;
  const std::size_t index_;
  const std::string name_;
  const std::filesystem::path config_;
  const std::filesystem::path data_dir_;
  const std::filesystem::path socket_;
  std::vector<std::filesystem::path> drives_;
  std::unique_ptr<support::Daemon> daemon_;

  std::mutex still_;  // guards the members below
  support::Random random_;
  std::vector<support::TreeWriter> writers_;
};

using Hosts = std::vector<std::unique_ptr<Host>>;

}  // namespace spoor::hosts
