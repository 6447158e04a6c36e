// One scan of this node: plan, walk, commit.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "scanner/drive_walk.h"
#include "scanner/scan_record.h"
#include "scanner/usage_database.h"
#include "tracker/cursor.h"
#include "tracker/mark_set.h"
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
  std::uint64_t max_dirs_per_second = 0;  // 0: no limit
  std::size_t errors_kept_max = 1000;
  std::uint64_t progress_every = 1000;  // directories read
};

// What was gathered from the cluster, before the walk: fixed for the whole scan.
struct ScanInput {
  const tracker::MarkSet& marks;
  // From where to read on next time, for every peer known: those that were heard moved on, the others
  // as they were. One that is missing here has no cursor afterwards.
  tracker::Cursors next_cursors = {};
  // The level at which the next cycle is to open; 0 is no opinion.
  std::size_t start_level = 0;
  // Up to where the roll of members is known (peer/roll_position.h).
  std::string roll_position = {};
  // When gathering began: changes from then on are not promised to be seen.
  base::WallTime started_at = {};
  tracker::CycleId cycle = {};
  bool partial = false;         // some peer was not heard
  std::string everything = {};  // why everything must be walked; empty where it need not
};

// All of it must outlive the scan.
struct ScanEnvironment {
  const DirectoryReader& reader;
  const base::Clock& clock;
  Waiter& waiter;
  std::stop_token stop = {};
  std::function<void(const Progress&)> progress = {};  // called on the scan's thread; may be empty
};

struct ScanReport {
  ScanRecord record;  // as it was committed
  std::chrono::nanoseconds duration{0};
  std::vector<ScanError> errors;  // the first of record.errors, failed drives among them
  std::vector<FailedDrive> failed_drives;

  // Whether some drive or directory was left for the next scan.
  bool left_something() const { return record.errors > 0; }
};

// Everything is walked where options or input say so, in a first scan, and after a change of the rules.
// Whatever can't be read is reported, and left for the next scan, which then reads all below it.
//
// The results, the cursors and the record are committed together at the end. Fails with
// Errc::interrupted once a stop is requested, Errc::database_failed, or std::errc::invalid_argument
// (a drive twice, or by a relative path); then the database is as before.
//
// The caller holds the scan lock (scan_lock.h), and gathered with database.cursors() as read under it.
base::Result<ScanReport> run_scan(UsageDatabase& database, const ScanOptions& options, const ScanInput& input,
                                  const ScanEnvironment& environment);

}  // namespace spoor::scanner
