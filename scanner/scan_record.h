#pragma once

#include <cstdint>
#include <string>

#include "base/clock.h"
#include "tracker/ids.h"

namespace spoor::scanner {

// What a walk did.
struct WalkFigures {
  std::uint64_t dirs_walked = 0;   // read
  std::uint64_t dirs_skipped = 0;  // known and clean: not touched
  std::uint64_t dirs_changed = 0;  // read, and other than at the last time
  std::uint64_t dirs_new = 0;      // read for the first time; among them those that took another's name
  std::uint64_t dirs_deleted = 0;  // gone, all below included
};

// A finished scan, as it is kept.
struct ScanRecord {
  std::uint64_t id = 0;
  base::WallTime started_at{};
  base::WallTime finished_at{};
  tracker::CycleId cycle;
  bool walked_everything = false;  // the mode is "full", else "incremental"
  bool partial = false;            // some peer was not heard: its marks wait for another scan
  std::string reason;              // why everything was walked; empty where it was not
  WalkFigures figures;
  std::uint64_t files = 0;  // of all drives, afterwards
  std::uint64_t bytes = 0;
  std::uint64_t errors = 0;  // directories left for next time, and drives that could not be walked
};

}  // namespace spoor::scanner
