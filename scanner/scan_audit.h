#pragma once

#include <chrono>
#include <cstdint>
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

// The share of the audit that is due in one scan; where the audit stands is kept with the scan's results.
//
// Not thread-safe.
class ScanAudit {
 public:
  // `period` 0: the audit is off. All must outlive it.
  ScanAudit(ScanTransaction& transaction, const AuditContext& context, std::chrono::nanoseconds period)
      : transaction_(transaction), context_(context), period_(period) {}

  // Of a scan that walks everything: a round begins.
  base::Result<> begin_anew();

  // `drives` are those that may be read, in their order. Returns the logical paths that are to be walked,
  // beside the marked ones.
  base::Result<std::set<std::string>> run(const std::vector<AuditedDrive>& drives);

  const AuditReport& report() const { return report_; }

 private:
  // The directory visited last: none at the beginning of a round, or of a drive.
  struct Position {
    std::string drive;
    std::optional<std::string> path;
  };

  base::Result<> restore();
  base::Result<> keep();
  base::Result<std::uint64_t> total(const std::vector<AuditedDrive>& drives);
  void take(Audit::Outcome outcome, std::set<std::string>& differing);

  ScanTransaction& transaction_;
  const AuditContext& context_;
  const std::chrono::nanoseconds period_;
  AuditState state_;
  Position position_;
  AuditReport report_;
};

}  // namespace spoor::scanner
