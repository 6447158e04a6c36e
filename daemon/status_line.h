#pragma once

#include <string>
#include <vector>

#include "daemon/peer_watch.h"
#include "tracker/ids.h"
#include "tracker/instance_record.h"

namespace spoor::daemon {

// How the node is, in a line for people: "cycle 12, 2 of 3 peers up, journal ok", or the trouble it has.
std::string status_line(tracker::CycleId current, const std::vector<PeerState>& peers,
                        tracker::Durability durability, const std::vector<std::string>& troubles);

}  // namespace spoor::daemon
