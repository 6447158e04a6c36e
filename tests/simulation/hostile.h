// A member of a simulated cluster that does not keep to the protocol: it responds under other nodes' names,
// with their instances or with new ones, and in cycles that no tracker has reached. What is acknowledged
// through it is no promise; what the others acknowledge must be seen.
#pragma once

#include <cstdint>
#include <string>

#include "tracker/cycles/ids.h"

namespace spoor::simulation {

// Another member, whose name and instance the hostile member knows.
struct Victim {
  std::string name;
  tracker::InstanceId instance;
};

// Forges the hostile member's true response. `choice` decides how; an eighth of the responses stay true.
std::string lie(const std::string& frame, const Victim& victim, std::uint64_t choice);

}  // namespace spoor::simulation
