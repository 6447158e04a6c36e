#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "cli/options.h"
#include "config/config.h"
#include "peer/gather/gather.h"
#include "tracker/cycles/ids.h"

namespace spoor::cli {

// The state of the last stored scan.
struct StoredScan {
  tracker::Cursors cursors;
  std::size_t start_level = 0;
  std::string membership_checkpoint;
};

struct GatheredMarks {
  peer::Gathered gathered;
  std::string membership_checkpoint;
  std::string note;  // for the report
  base::WallTime started_at;
};

// Reads the members, acquires the cycle lease, and gathers the marks of the cluster, for a scan that began at
// `started_at`. A dry run opens no cycle and stores no members; a full scan needs no response. Fails if the
// configuration is unusable, or if fewer peers respond than `scan.require` demands.
base::Result<GatheredMarks> gather_marks(const GlobalOptions& global, const config::Config& config,
                                         const base::Clock& clock, const StoredScan& stored,
                                         base::WallTime started_at, bool dry_run, bool full);

}  // namespace spoor::cli
