// What `spoor scan` says of a scan.
#pragma once

#include <cstddef>
#include <string>

#include "peer/gather.h"
#include "scanner/scan.h"
#include "tracker/level_schedule.h"

namespace spoor::cli {

// All of it must outlive what is made of it.
struct ScanOutcome {
  const peer::Gathered& gathered;
  const tracker::LevelSchedule& levels;         // of this node
  const scanner::ScanReport* report = nullptr;  // a dry run has none
  // Of the scan that was killed last time, and ended before this one began.
  const scanner::ScanReport* resumed = nullptr;
  std::size_t start_level = 0;  // what the next scan asks for
  bool full = false;            // as asked for
  std::string note = {};        // what went wrong beside the scan

  // Why everything is walked, as far as it is known before; empty where it need not be.
  std::string reason() const;
  bool is_full() const { return report != nullptr ? report->record.walked_everything : !reason().empty(); }
};

// Both end with a newline.
std::string scan_json(const ScanOutcome& outcome);
std::string scan_text(const ScanOutcome& outcome);

}  // namespace spoor::cli
