#pragma once

#include <string>

#include "base/clock.h"

namespace spoor::daemon {

// The figures that Prometheus' own libraries export of their process, under the same names (`process_...`).
// Figures that the system does not report are left out.
std::string process_metrics(base::WallTime started_at);

}  // namespace spoor::daemon
