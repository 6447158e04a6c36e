// Runs commands of the user at the end of a scan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/history/usage_limits.h"
#include "scanner/store/usage_database.h"

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

// Runs usage.limit_command, with /bin/sh, for a limit that is exceeded, which its environment describes:
// SPOOR_LIMIT_NODE, _PATH (empty: everything), _SCOPE (node or cluster), _EXCEEDED (bytes, files,
// growth_per_day) and _TEXT, a sentence. Fails if it does not end with 0 within a minute, and kills it then.
base::Result<> run_limit_command(const std::string& command, const std::string& node,
                                 const scanner::LimitState& state, const std::stop_token& stop);

}  // namespace spoor::cli
