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
  explicit WatchedNode(std::filesystem::path drive, FdStore* manager = nullptr);

  // Each returns once the program serves; a former one must have ended.
  void start_daemon();
  void start_watch();

  support::Daemon& daemon() { return *daemon_; }
  support::Daemon& watch() { return *watch_; }

  int stop_watch();   // SIGTERM; returns the exit code
  int stop_daemon();  // SIGTERM; returns the exit code
  void kill_watch();
  void kill_daemon();

  // `spoor-watch --config ... ARGUMENTS`, started by the words of `before`.
  support::CommandResult run_watch(const std::vector<std::string>& arguments,
                                   const std::vector<std::string>& before = {}) const;

  // Returns once every change made so far on the drive is marked. The events of a file system come in order:
  // when a later change is marked, the earlier ones are read. As a batch is several requests, it makes one
  // change more: when that is marked, the batch of the first is acknowledged.
  void wait_until_marked();

  // Returns once the drive is watched again, after a time in which no change was.
  void wait_until_watched();

  // Removes what these have created, except for the last two of it.
  void remove_old_markers();

  // `spoor scan --json`, which is expected to succeed.
  nlohmann::json scan();

  // `spoor scan --json` while the tree changes: directories may be left for the next scan.
  void scan_while_changing();

  // What `spoor changes --since` lists: directories, the root as an empty path.
  std::set<std::string> changes_since(std::uint64_t scan, bool deleted = false);

  // The totals of the database: of the drive, and of each directory.
  support::TreeTotals usage();
  std::map<std::string, support::TreeTotals> directory_usage();

  // The drive in watch.json; null if there is none.
  nlohmann::json watch_state() const;

  // The id of the newest gap in watch.json; empty if there is none.
  std::string gap_id() const;

  std::filesystem::path socket() const { return directory_ / "spoord.sock"; }
  std::filesystem::path config() const { return directory_ / "spoor.json"; }
  const std::filesystem::path& drive() const { return drive_; }

 private:
  support::CommandResult spoor(std::vector<std::string> arguments) const;
  std::optional<bool> is_marked(const std::string& path) const;
  std::string make_marker();

  support::TempDirectory directory_;
  std::filesystem::path drive_;
  FdStore* manager_;
  std::size_t marker_count_ = 0;
  std::vector<std::string> markers_;
  std::unique_ptr<support::Daemon> daemon_;
  std::unique_ptr<support::Daemon> watch_;
};

// The drives that a scan walked for a gap; empty if none.
nlohmann::json drive_gaps(const nlohmann::json& scan);

}  // namespace spoor::watch
