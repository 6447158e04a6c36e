// The parts of validate(). Each problem carries the key of its setting.
#pragma once

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

void check_names_and_paths(const Config& config, Problems& problems);
void check_ranges(const Config& config, Problems& problems);
void check_endpoints(const Config& config, Problems& problems);
void check_peers_and_auth(const Config& config, Problems& problems);

// Runs all of the checks.
Problems find_problems(const Config& config);

}  // namespace spoor::config
