// The limits of directories after a scan: those of the cluster, and the command for those that are exceeded.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"
#include "config/config.h"
#include "scanner/history/usage_limits.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {

// Compares the totals of the cluster, as the daemon finds them, with their limits, and stores the result.
// `limits` are those that the scan found, and are updated. Returns what could not be done: sentences.
//
// The caller holds the scan lock for both; `scan` is the last scan.
std::vector<std::string> check_cluster_limits(const GlobalOptions& global, scanner::UsageDatabase& database,
                                              std::uint64_t scan, std::vector<scanner::LimitState>& limits);

struct LimitCommands {
  std::vector<std::string> failures;
  bool was_stopped = false;  // by SIGTERM or SIGINT
};

// Runs usage.limit_command once for each limit that is exceeded, until it was not, and stores that. What
// fails is repeated after the next scan.
LimitCommands run_limit_commands(const config::Config& config, scanner::UsageDatabase& database,
                                 std::vector<scanner::LimitState>& limits);

}  // namespace spoor::cli
