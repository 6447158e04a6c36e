#pragma once

#include <string>

#include "daemon/status/scan_watch.h"
#include "daemon/status/status_json.h"

namespace spoor::daemon {

// The status, for Prometheus. Labels are from the configuration, or the position of a cycle among those kept:
// never from a path or a number that grows.
std::string status_metrics(const StatusInput& status, bool is_ready);

std::string scan_metrics(const ScanFigures& scans);

}  // namespace spoor::daemon
