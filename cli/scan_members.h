#pragma once

#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "cli/options.h"
#include "config/config.h"
#include "peer/members.h"
#include "tracker/cursor.h"

namespace spoor::cli {

// Whom a scan of this node asks, as the configuration says: the own daemon first. `stored` are the cursors of
// the last scan, `registry` another source of members; a dry run leaves the roll of members as it is. Fails
// where the configuration can't be used.
base::Result<peer::Members> find_scan_members(const GlobalOptions& global, const config::Config& config,
                                              const base::Clock& clock, const tracker::Cursors& stored,
                                              std::optional<peer::MemberRegistry> registry, bool dry_run);

// Stores what came of asking them (peer::settle_members): after gathering, whatever becomes of the scan. Does
// nothing for the members of a dry run.
base::Result<> settle_scan_members(const config::Config& config, const base::Clock& clock,
                                   const tracker::Cursors& stored, const peer::Members& members,
                                   const peer::AddressStates& asked);

}  // namespace spoor::cli
