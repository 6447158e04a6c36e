// The output of `spoor scan` and `spoor scans`.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "peer/gather/gather.h"
#include "scanner/scan.h"
#include "scanner/store/scan_record.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::cli {

// What it refers to must outlive it.
struct ScanOutcome {
  const peer::Gathered& gathered;
  const tracker::LevelSchedule& levels;         // of this node
  const scanner::ScanReport* report = nullptr;  // a dry run has none
  // Of an earlier scan that was killed; it was resumed and finished before this one.
  const scanner::ScanReport* resumed = nullptr;
  std::size_t start_level = 0;              // requested for the next cycle
  bool full = false;                        // requested by the user
  std::vector<std::string> unwatched = {};  // drives, of which changes may not be marked, and why
  std::string note = {};                    // an error outside the scan itself

  // Why everything is walked, or would be in a dry run; empty for an incremental scan.
  std::string reason() const;
  bool is_partial() const { return !gathered.complete() || !unwatched.empty(); }
  bool is_full() const { return report != nullptr ? report->record.walked_everything : !reason().empty(); }
};

nlohmann::ordered_json scan_json(const ScanOutcome& outcome);

// Four lines, and one for each thing that is left or wrong. `with_details`: also the figures of the audit,
// the cycle and the filter; a dry run always has these. Ends with a newline.
std::string scan_text(const ScanOutcome& outcome, bool with_details);

// One line for each scan, in the given order. Ends with a newline.
std::string scans_text(const std::vector<scanner::ScanRecord>& scans);

}  // namespace spoor::cli
