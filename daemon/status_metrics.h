#pragma once

#include <string>

#include "daemon/scan_watch.h"
#include "daemon/status_json.h"

namespace spoor::daemon {

// What the status says, for Prometheus. Labels come from the configuration, or are the place of a cycle among
// those kept: never from a path or a number that grows.
std::string status_metrics(const StatusInput& status, bool is_ready);

std::string scan_metrics(const ScanFigures& scans);

}  // namespace spoor::daemon
