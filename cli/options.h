#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "peer/credentials.h"
#include "peer/endpoint.h"

namespace spoor::cli {

// What every command takes.
struct GlobalOptions {
  std::optional<std::filesystem::path> config_file;
  std::vector<std::string> overrides;
  std::optional<std::string> url;
  std::filesystem::path token_file;  // empty: peers.token_file
  std::filesystem::path ca;          // empty: peers.tls.ca

  base::Result<config::Config> load_config() const;

  // Where the local daemon is: --url, or else what the configuration says.
  base::Result<peer::Endpoint> own_endpoint() const;

  // How the daemon there is told who asks: --token-file and --ca, or else what the configuration says. To a
  // Unix socket, where the kernel tells, only --token-file.
  base::Result<peer::Credentials> own_credentials(const peer::Endpoint& endpoint) const;
};

// How peers are told who asks.
base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers);

// The daemon of this configuration as a client on the same machine reaches it: the first Unix socket, else
// the first TCP listener. (Where `listen` is not given, the socket may have been left out: then only if it is
// there.)
base::Result<peer::Endpoint> own_endpoint(const config::Config& config);

// Refuses --url for a command that reads files of this machine; whether it did.
bool refuse_url(const GlobalOptions& global, std::string_view command);

// Prints "spoor: MESSAGE" to standard error and gives `code` back.
int fail(int code, std::string_view message);

}  // namespace spoor::cli
