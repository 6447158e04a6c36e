#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

// What is wrong though the configuration is valid, a line each: certificates, keys and tokens that can't be
// used or have expired, users and groups that this machine does not know. What only systemd gives
// (credentials) is not looked at where it did not.
std::vector<std::string> check(const config::Config& config);

// Runs a node until SIGTERM or SIGINT: loads, serves, saves. `reload` gives the configuration anew,
// for SIGHUP. Fails where the node can't start, or where its state could not be saved at the end.
base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version);

}  // namespace spoor::daemon
