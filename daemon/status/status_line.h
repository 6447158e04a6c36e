#pragma once

#include <string>
#include <vector>

#include "daemon/membership/peer_watch.h"
#include "tracker/cycles/ids.h"
#include "tracker/storage/instance_record.h"

namespace spoor::daemon {

// The state of the node in one line for people: "cycle 12, 2 of 3 peers up, journal ok", or its health
// errors.
std::string status_line(tracker::CycleId current, const std::vector<PeerState>& peers,
                        tracker::Durability durability, const std::vector<std::string>& health_errors);

}  // namespace spoor::daemon
