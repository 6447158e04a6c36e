// The command of `spoor scan --exec`: what it is given, and what comes again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/usage_database.h"

namespace spoor::cli {

// The consumer whose cursor says up to which scan hooks were told what changed.
inline constexpr const char* hook_consumer = "exec";

struct ScanHook {
  std::string command;  // for /bin/sh; the directories are its further arguments
  std::filesystem::path data_dir;
};

// Runs the command for batches of the directories that changed since the last time all went well, one batch
// after the other; for "./", with SPOOR_EVERYTHING=1, where what changed is not known. SIGTERM and SIGINT are
// passed on to the command, which is waited for, and are a failure. After a failure everything comes again
// next time: each directory is told at least once.
//
// Only under the lock of the scan; `scan` is the last one.
base::Result<> run_scan_hook(const ScanHook& hook, scanner::UsageDatabase& database, std::uint64_t scan,
                             const base::Clock& clock);

}  // namespace spoor::cli
