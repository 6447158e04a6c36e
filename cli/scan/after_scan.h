// What follows once a scan is committed: the limits of the cluster, and the commands of the user.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "cli/program/options.h"
#include "config/config.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/usage_limits.h"

namespace spoor::cli {

// Runs the command of `spoor scan --exec`, with /bin/sh, for batches of the directories that changed since
// its last success, which are appended as arguments, one batch after the other; for "./", with
// SPOOR_EVERYTHING=1, if the changes are not known. On SIGTERM or SIGINT it sends SIGTERM to the command,
// waits for its end, and fails. After a failure the next call passes all changes again: each directory is
// passed at least once.
//
// The caller holds the scan lock; `scan` is the last scan.
base::Result<> run_scan_hook(const std::string& command, const std::filesystem::path& data_dir,
                             scanner::UsageDatabase& database, std::uint64_t scan, const base::Clock& clock);

// Compares the totals of the cluster, as the daemon finds them, with their limits, and stores the result.
// `limits` are those that the scan found, and are updated. Returns what could not be done: sentences.
//
// The caller holds the scan lock for this and the next one; `scan` is the last scan.
std::vector<std::string> check_cluster_limits(const GlobalOptions& global, scanner::UsageDatabase& database,
                                              std::uint64_t scan, std::vector<scanner::LimitState>& limits);

struct LimitCommands {
  std::vector<std::string> failures;
  bool was_stopped = false;  // by SIGTERM or SIGINT
};

// Runs usage.limit_command, with /bin/sh, once for each limit that is exceeded, until it was not, and stores
// that. The environment describes the limit: SPOOR_LIMIT_NODE, _PATH (empty: everything), _SCOPE (node or
// cluster), _EXCEEDED (bytes, files, growth_per_day) and _TEXT, a sentence. A command that does not end with
// 0 within a minute, when it is killed, is repeated after the next scan.
LimitCommands run_limit_commands(const config::Config& config, scanner::UsageDatabase& database,
                                 std::vector<scanner::LimitState>& limits);

}  // namespace spoor::cli
