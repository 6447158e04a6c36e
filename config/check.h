// The parts of validate(), with the key of each problem kept apart.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

void check_names_and_paths(const Config& config, Problems& problems);
void check_ranges(const Config& config, Problems& problems);
void check_endpoints(const Config& config, Problems& problems);
void check_dns(const Config& config, Problems& problems);
void check_etcd(const Config& config, Problems& problems);
void check_auth(const Config& config, Problems& problems);

// Why `url` can't be where another daemon is reached, or nothing.
std::optional<std::string> peer_url_problem(const std::string& url);

// A number from 1 to 65535, and nothing else.
bool is_port(std::string_view text);

// All of them.
Problems find_problems(const Config& config);

}  // namespace spoor::config
