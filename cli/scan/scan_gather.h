#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"
#include "cli/program/options.h"
#include "config/config.h"
#include "peer/gather/gather.h"
#include "tracker/cycles/peer_book.h"

namespace spoor::cli {

// The state of the last stored scan.
struct StoredScan {
  tracker::PeerBook peers;
  std::size_t start_level = 0;
  std::optional<base::WallTime> started_at;  // none: there was no scan
};

struct GatheredMarks {
  peer::Gathered gathered;
  std::string note;  // for the report
  base::WallTime started_at;
};

// Reads the members, and gathers the marks of the cluster, for a scan that began at `started_at`. A dry run
// opens no cycle; a full scan needs no response. Fails if the configuration is unusable, or if fewer peers
// respond than `scan.require` demands.
base::Result<GatheredMarks> gather_marks(const GlobalOptions& global, const config::Config& config,
                                         const StoredScan& stored, base::WallTime started_at, bool dry_run,
                                         bool full);

}  // namespace spoor::cli
