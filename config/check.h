// The parts of validate(), with the key of each problem kept apart.
#pragma once

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

void check_names_and_paths(const Config& config, Problems& problems);
void check_ranges(const Config& config, Problems& problems);
void check_endpoints(const Config& config, Problems& problems);
void check_dns(const Config& config, Problems& problems);

// All of them.
Problems find_problems(const Config& config);

}  // namespace spoor::config
