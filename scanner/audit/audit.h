// Reads directories that have no mark, to find changes without a mark (docs/scanner.md, "Audit").
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "scanner/audit/audit_state.h"
#include "scanner/walk/walk_context.h"
#include "tracker/filter/mark_set.h"

namespace spoor::scanner {

// What the audit of one scan found.
struct AuditReport {
  std::uint64_t audited = 0;
  std::uint64_t missed = 0;
  std::vector<std::string> missed_paths;  // logical; the first ones
  // Each directory was read then, or later. Nothing if the audit is off, or nothing was ever read.
  std::optional<base::WallTime> oldest_total;
};

// Logical paths of what the walk is to read again.
struct DifferingPaths {
  std::set<std::string> directories;  // themselves
  std::set<std::string> trees;        // with all that is below

  bool empty() const { return directories.empty() && trees.empty(); }
  tracker::MarkSet marks() const;
};

// The share of the audit that is due in one scan. Each drive has a round of its own, which is kept with the
// scan's results under the id of the drive in the database: the order of the drives in the configuration does
// not matter. Compares what is stored of directories with what is on the drives, and changes nothing: the
// walk reads again what differs.
//
// Throws as noted at WalkContext. Not thread-safe.
class Audit {
 public:
  // ScanOptions::audit_period 0: the audit is off. `context` must outlive it.
  explicit Audit(WalkContext& context) : context_(context) {}

  // Audits the drives, unless everything is walked anyway. Returns what is to be walked beside the marked
  // paths. Once.
  DifferingPaths run(const std::vector<KnownDrive>& drives, bool walks_everything);

  // After the walk: stores the state of the rounds. A drive that was walked in full begins a round, unless it
  // failed.
  void keep(bool walked_everything, const std::vector<ScanError>& failed);

  // Those that were found before the scan was resumed, or by one that nobody resumed.
  void found_before(AuditReport report) { report_ = std::move(report); }

  const AuditReport& report() const { return report_; }

 private:
  struct OnDrive {
    KnownDrive drive;
    AuditState state;
    std::optional<std::string> position;  // the directory visited last: none at the beginning of a round
    bool is_walked_in_full = false;
  };

  OnDrive restore(const KnownDrive& drive);
  void run_on(OnDrive& on, base::SteadyTime started, base::SteadyTime until, DifferingPaths& differing);

  WalkContext& context_;
  std::vector<OnDrive> drives_;
  AuditReport report_;
};

}  // namespace spoor::scanner
