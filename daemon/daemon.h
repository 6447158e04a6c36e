#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

// The problems of a valid configuration on this machine, one line each: overlapping drives; certificates,
// keys and tokens that are unusable or have expired; unknown users and groups. systemd credentials are
// checked only if systemd passed them to this process.
std::vector<std::string> check(const config::Config& config);

// Runs a node until SIGTERM or SIGINT: loads its state, serves, and saves a last snapshot. `reload` reads the
// configuration again, at SIGHUP, on another thread. Fails if the node can't start, or if its state could not
// be saved at the end.
base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version);

}  // namespace spoor::daemon
