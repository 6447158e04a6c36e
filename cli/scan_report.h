// The output of `spoor scan`.
#pragma once

#include <cstddef>
#include <string>

#include "peer/gather/gather.h"
#include "scanner/scan.h"
#include "tracker/filter/level_schedule.h"

namespace spoor::cli {

// What it refers to must outlive it.
struct ScanOutcome {
  const peer::Gathered& gathered;
  const tracker::LevelSchedule& levels;         // of this node
  const scanner::ScanReport* report = nullptr;  // a dry run has none
  // Of an earlier scan that was killed; it was resumed and finished before this one.
  const scanner::ScanReport* resumed = nullptr;
  std::size_t start_level = 0;  // requested for the next cycle
  bool full = false;            // requested by the user
  std::string note = {};        // an error outside the scan itself

  // Why everything is walked, or would be in a dry run; empty for an incremental scan.
  std::string reason() const;
  bool is_full() const { return report != nullptr ? report->record.walked_everything : !reason().empty(); }
};

// Both end with a newline.
std::string scan_json(const ScanOutcome& outcome);
std::string scan_text(const ScanOutcome& outcome);

}  // namespace spoor::cli
