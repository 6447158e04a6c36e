// Runs the command of `spoor scan --exec`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/store/usage_database.h"

namespace spoor::cli {

// The consumer whose position is the last scan of which a hook has received all changes.
inline constexpr const char* hook_consumer = "exec";

struct ScanHook {
  std::string command;  // for /bin/sh; the directories are appended as arguments
  std::filesystem::path data_dir;
};

// Runs the command for batches of the directories that changed since its last success, one batch after the
// other; for "./", with SPOOR_EVERYTHING=1, if the changes are not known. On SIGTERM or SIGINT it sends
// SIGTERM to the command, waits for its end, and fails. After a failure the next call passes all changes
// again: each directory is passed at least once.
//
// The caller holds the scan lock; `scan` is the last scan.
base::Result<> run_scan_hook(const ScanHook& hook, scanner::UsageDatabase& database, std::uint64_t scan,
                             const base::Clock& clock);

}  // namespace spoor::cli
