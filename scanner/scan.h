// One scan of this node: plan, walk, commit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/drive_walk.h"
#include "scanner/scan_audit.h"
#include "scanner/scan_record.h"
#include "scanner/unfinished_scan.h"
#include "scanner/usage_database.h"
#include "tracker/namespace_rules.h"

namespace spoor::scanner {

struct ScanOptions {
  // Absolute paths, none twice. Drives that were here at the last scan and are not any more leave the
  // database; ones that are new are walked in full.
  std::vector<Drive> drives;
  tracker::NamespaceRules rules;
  // Somebody asked for everything to be walked. This also takes drives as they are that look as if
  // they were not mounted.
  bool full = false;
  std::uint64_t max_dirs_per_second = 0;    // 0: no limit
  std::size_t threads = 1;                  // of all drives; each drive that is walked has one at least
  std::size_t open_directories_max = 1024;  // about
  // In which every directory is read once that nobody marks; 0: never.
  std::chrono::nanoseconds audit_period{0};
  bool file_feed = false;  // the feed names files, too
  std::size_t errors_kept_max = 1000;
  std::uint64_t progress_every = 64;  // directories read
  // Changes that nobody has read yet are kept, from this scan on, as long as all that are kept are not more.
  std::optional<std::uint64_t> oldest_unread = {};
  std::uint64_t changes_kept_max = 10'000'000;
};

// All of it must outlive the scan.
struct ScanEnvironment {
  const DirectoryReader& reader;
  const base::Clock& clock;
  Waiter& waiter;
  std::stop_token stop = {};
  std::function<void(const Progress&)> progress = {};  // called on the scan's thread; may be empty
  UnfinishedScan* unfinished = nullptr;                // where to keep what a killed scan would lose
};

struct ScanReport {
  ScanRecord record;  // as it was committed
  std::uint64_t dirs_replayed =
      0;  // of those walked: a scan that did not end had read them, and this one did not
  std::chrono::nanoseconds duration{0};
  std::vector<ScanError> errors;  // the first of record.errors, failed drives among them
  std::vector<FailedDrive> failed_drives;
  base::Result<> log;  // whether it could keep what it read, for the next one, were it killed
  AuditReport audit;

  // Whether some drive or directory was left for the next scan.
  bool left_something() const { return record.errors > 0; }
};

// What a scan that begins now would have to share with one that was killed, to go on with it.
base::Result<ScanSetting> setting_of_scan(UsageDatabase& database, const ScanOptions& options);

// Everything is walked where options or input say so, in a first scan, and after a change of the rules.
// Whatever can't be read is reported, and left for the next scan, which then reads all below it.
//
// The results, the cursors and the record are committed together at the end. Fails with
// Errc::interrupted once a stop is requested, Errc::database_failed, or std::errc::invalid_argument
// (a drive twice, or by a relative path); then the database is as before. Drives are walked side by side;
// what was read until a scan ended before its time, environment.unfinished keeps.
//
// The caller holds the scan lock (scan_lock.h), and gathered with database.cursors() as read under it.
base::Result<ScanReport> run_scan(UsageDatabase& database, const ScanOptions& options, const ScanInput& input,
                                  const ScanEnvironment& environment);

}  // namespace spoor::scanner
