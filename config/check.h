// The parts of validate(). Each problem carries the key of its setting.
#pragma once

#include <filesystem>
#include <string>

#include "config/config.h"
#include "config/problem.h"

namespace spoor::config {

void check_names_and_paths(const Config& config, Problems& problems);
void check_ranges(const Config& config, Problems& problems);
void check_endpoints(const Config& config, Problems& problems);
void check_peers_and_auth(const Config& config, Problems& problems);
void check_publish(const Config& config, Problems& problems);

// Of a file, which may be empty, and of the files of a TLS client.
void check_secret_file(const std::string& key, const std::filesystem::path& file, Problems& problems);
void check_tls_client(const std::string& key, const PeerTls& tls, Problems& problems);
// 1 to 64 of A-Z a-z 0-9 . _ -
bool is_name(const std::string& text);

// Runs all of the checks.
Problems find_problems(const Config& config);

}  // namespace spoor::config
