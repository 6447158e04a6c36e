#pragma once

#include <string>

#include "base/clock.h"

namespace spoor::daemon {

// What Prometheus' own libraries tell of their process, under the same names (`process_...`). What the system
// does not tell is left out.
std::string process_metrics(base::WallTime started_at);

}  // namespace spoor::daemon
