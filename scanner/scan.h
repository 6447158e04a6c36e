// One scan of this node, after gathering: plan, walk, commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "base/file_system.h"
#include "scanner/audit/audit.h"
#include "scanner/store/scan_record.h"
#include "scanner/store/usage_database.h"
#include "scanner/usage/scan_history.h"
#include "scanner/usage/usage_limits.h"
#include "scanner/walk/scan_input.h"
#include "scanner/walk/walk_context.h"

namespace spoor::scanner {

struct ScanReport {
  ScanRecord record;                // as it was committed
  std::uint64_t dirs_replayed = 0;  // of those walked: by the scan that this one resumed
  std::chrono::nanoseconds duration{0};
  std::vector<ScanError> errors;  // the first of record.errors, failed drives among them
  std::vector<ScanError> failed_drives;
  std::uint64_t mount_count = 0;    // mount points below the drives: not entered, and looked at by each scan
  std::vector<std::string> mounts;  // the first of them
  std::vector<ScanError> drive_gaps;  // drives that were walked in full, and why
  AuditReport audit;
  HistoryReport history;
  std::vector<LimitState> limits;  // in the order of the options

  // Whether some drive or directory was left for the next scan.
  bool left_something() const { return record.errors > 0; }
};

// Acquires the lock of the only scan that may run on a node. Acquire it before reading the stored cursors:
// only the holder may use them.
//
// Fails with Errc::scan_running if another process holds it; does not wait.
base::Result<base::FileLock> lock_scan(const std::filesystem::path& data_dir);

// The input of an unfinished scan that run_scan() with the same options resumes; nothing if there is none, or
// a full scan is asked for. Fails with std::errc::invalid_argument as run_scan() does, or where the database
// does.
base::Result<std::optional<ScanInput>> find_unfinished(UsageDatabase& database, ScanOptions options);

// Everything is walked if options or input ask for it, in a first scan, and after a change of the rules. What
// can't be read is reported, and left for the next scan, which then reads all below it.
//
// The rows of directories are committed every few seconds, each total as the sum of what is below it; the
// cursors, the record, the feed and the history only with the last of them. Fails with Errc::interrupted
// after a stop was requested, Errc::database_failed, or std::errc::invalid_argument (a drive twice, or by a
// relative path); then the database is as after the last commit: a scan with the input of find_unfinished()
// walks on from there, and one with another input finds what that one did not walk.
//
// The caller holds the scan lock, and gathered with database.cursors() as read under it.
base::Result<ScanReport> run_scan(UsageDatabase& database, ScanOptions options, const ScanInput& input,
                                  const ScanEnvironment& environment);

}  // namespace spoor::scanner
