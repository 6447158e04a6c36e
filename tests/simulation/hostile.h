// A member of a simulated cluster that does not keep to the protocol: it responds under other nodes' names,
// with their instances or with new ones, and in cycles that no tracker has reached. What is acknowledged
// through it is no promise; what the others acknowledge must be seen.
#pragma once

#include <cstdint>
#include <string>

#include "tracker/ids.h"

namespace spoor::simulation {

// Another member, whose name and instance it knows.
struct Victim {
  std::string name;
  tracker::InstanceId instance;
};

// What it makes of its true answer. `choice` decides the lie; an eighth of the answers stay true.
std::string lie(const std::string& frame, const Victim& victim, std::uint64_t choice);

}  // namespace spoor::simulation
