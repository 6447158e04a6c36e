#pragma once

#include <functional>
#include <string>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

// Runs a node until SIGTERM or SIGINT: loads, serves, saves. `reload` gives the configuration anew,
// for SIGHUP. Fails where the node can't start, or where its state could not be saved at the end.
base::Result<> run(const config::Config& config, const std::function<base::Result<config::Config>()>& reload,
                   const std::string& version);

}  // namespace spoor::daemon
