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
void check_etcd(const Config& config, Problems& problems);
void check_auth(const Config& config, Problems& problems);

// Checks the files of a TLS client under the key `key`.
void check_tls_client(const std::string& key, const PeerTls& tls, Problems& problems);

// Checks the file under the key `key`, which may be empty.
void check_secret_file(const std::string& key, const std::filesystem::path& file, Problems& problems);

// Runs all of the checks.
Problems find_problems(const Config& config);

}  // namespace spoor::config
