#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "scanner/audit.h"
#include "scanner/audit_state.h"
#include "scanner/usage_database.h"

namespace spoor::scanner {

// What the audit of one scan found.
struct AuditReport {
  std::uint64_t audited = 0;
  std::uint64_t missed = 0;
  std::vector<std::string> missed_paths;  // logical; the first ones
  // When the directory was read that was not for the longest time: not before that. Nothing where the audit
  // is off, or nothing was ever read.
  std::optional<base::WallTime> oldest_total;
};

// The share of the audit that is due in one scan. Each drive has a round of its own, which is kept with the
// scan's results under the drive's number in the database: in which order drives are configured does not
// count.
//
// Not thread-safe.
class ScanAudit {
 public:
  // `period` 0: the audit is off. All must outlive it.
  ScanAudit(ScanTransaction& transaction, const AuditContext& context, std::chrono::nanoseconds period)
      : transaction_(transaction), context_(context), period_(period) {}

  // Where the audit stands on all drives of the scan. First.
  base::Result<> restore(const std::vector<AuditedDrive>& drives);

  // Returns the logical paths that are to be walked, beside the marked ones. Not where everything is walked.
  base::Result<DifferingPaths> run();

  // After the walk: a drive that was walked in full begins a round, unless it failed.
  base::Result<> keep(bool walked_everything,
                      const std::function<bool(const std::filesystem::path& drive)>& has_failed);

  const AuditReport& report() const { return report_; }

 private:
  struct OnDrive {
    AuditedDrive drive;
    AuditState state;
    std::optional<std::string> position;  // the directory visited last: none at the beginning of a round
    bool is_walked_in_full = false;
  };

  base::Result<OnDrive> restore_drive(const AuditedDrive& drive);
  base::Result<> run_on(OnDrive& on, DifferingPaths& differing);
  base::Result<std::uint64_t> total(const AuditedDrive& drive);
  void take(Audit::Outcome outcome, DifferingPaths& differing);

  ScanTransaction& transaction_;
  const AuditContext& context_;
  const std::chrono::nanoseconds period_;
  std::vector<OnDrive> drives_;
  AuditReport report_;
};

}  // namespace spoor::scanner
