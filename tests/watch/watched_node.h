// A node with one drive, on which spoor-watch marks what changes: nothing else does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "peer/http/watch_report.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_totals.h"
#include "tests/watch/fd_store.h"

namespace spoor::watch {

// Real processes: spoord, spoor-watch and `spoor scan`. The audit is off, so that it finds no change that
// lacks a mark. Failures are those of the test.
//
// Not thread-safe.
class WatchedNode {
 public:
  // `manager`, if there is one, starts spoor-watch; it must outlive this object.
  // `settings`: further ones.
  explicit WatchedNode(std::filesystem::path drive, FdStore* manager = nullptr,
                       const nlohmann::json& settings = nlohmann::json::object());

  // Each returns once the program serves; a former one must have ended.
  void start_daemon();
  void start_watch(const std::string& watched = "1 of 1");

  support::Daemon& daemon() { return *daemon_; }
  support::Daemon& watch() { return *watch_; }

  int stop_watch();   // SIGTERM; returns the exit code
  int stop_daemon();  // SIGTERM; returns the exit code
  void kill_watch();
  void kill_daemon();

  // `spoor-watch --config ... ARGUMENTS`, started by the words of `before`.
  support::CommandResult run_watch(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& before = {}) const;

  // Returns once the drive is watched and every change made so far on it is marked, as a scan does before it
  // gathers.
  peer::DriveSync synchronise();

  // The id of the drive's last gap.
  std::string gap_id() { return synchronise().gap.id; }

  support::CommandResult spoor(std::vector<std::string> arguments) const;

  // `spoor scan --json`, whatever its exit code. `patience`: how long it waits for spoor-watch.
  support::CommandResult run_scan(const std::string& patience = "60s") const {
    return spoor({"--set", "watch.timeout=" + patience, "scan", "--json"});
  }

  // The same, which is expected to succeed.
  nlohmann::json scan(const std::string& patience = "60s");

  // `spoor scan --json` while the tree changes: directories may be left for the next scan.
  void scan_while_changing();

  // What `spoor changes --since` lists: directories, the root as an empty path.
  std::set<std::string> changes_since(std::uint64_t scan, bool deleted = false);

  // The totals of the database: of the drive, and of each directory.
  support::TreeTotals usage();
  std::map<std::string, support::TreeTotals> directory_usage();

  std::filesystem::path socket() const { return directory_ / "spoord.sock"; }
  std::filesystem::path config() const { return directory_ / "spoor.json"; }
  const std::filesystem::path& drive() const { return drive_; }

 private:
  support::TempDirectory directory_;
  std::filesystem::path drive_;
  FdStore* manager_;
  std::unique_ptr<support::Daemon> daemon_;
  std::unique_ptr<support::Daemon> watch_;
};

// The drives that a scan walked for a gap; empty if none.
nlohmann::json drive_gaps(const nlohmann::json& scan);

}  // namespace spoor::watch
