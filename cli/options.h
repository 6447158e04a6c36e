#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "peer/endpoint.h"

namespace spoor::cli {

// What every command takes.
struct GlobalOptions {
  std::optional<std::filesystem::path> config_file;
  std::vector<std::string> overrides;
  std::optional<std::string> url;

  base::Result<config::Config> load_config() const;

  // Where the local daemon is: --url, or else what the configuration says.
  base::Result<peer::Endpoint> own_endpoint() const;
};

// The daemon of this configuration as a client on the same machine reaches it: the Unix socket where
// it is there, else the first TCP listener.
base::Result<peer::Endpoint> own_endpoint(const config::Config& config);

// Prints "spoor: MESSAGE" to standard error and gives `code` back.
int fail(int code, std::string_view message);

}  // namespace spoor::cli
