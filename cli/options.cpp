#include "cli/options.h"

#include <fmt/core.h>

#include <cstdio>

#include "cli/format.h"
#include "config/derived.h"
#include "config/load.h"
#include "config/secret_file.h"

namespace spoor::cli {
base::Result<config::Config> GlobalOptions::load_config() const {
  return config::load(config_file, overrides);
}

base::Result<base::Endpoint> GlobalOptions::own_endpoint() const {
  if (url) return base::parse_endpoint(*url);
  const auto config = load_config();
  if (!config) return config.error();
  return config::own_endpoint(*config);
}

base::Result<peer::Credentials> GlobalOptions::own_credentials(const base::Endpoint& endpoint) const {
  config::Config::Peers peers;
  const auto config = load_config();
  if (config && !endpoint.is_unix()) peers = config->peers;
  if (!token_file.empty()) peers.token_file = token_file;
  if (!ca.empty() && !endpoint.is_unix()) {
    if (!peers.tls) peers.tls.emplace();
    peers.tls->ca = ca;
  }
  return peer_credentials(peers);
}

base::Result<peer::Credentials> peer_credentials(const config::Config::Peers& peers) {
  const auto secrets = config::peer_secrets(peers);
  if (!secrets) return secrets.error();
  return peer::make_credentials(secrets->secret, secrets->tls);
}

void refuse_url(const GlobalOptions& global, std::string_view command) {
  if (!global.url) return;
  throw Failure{
      exit_usage,
      fmt::format("--url: 'spoor {}' does not ask a daemon: run it on that machine, without --url", command)};
}

int fail(int code, std::string_view message) {
  print_error(message);
  return code;
}

}  // namespace spoor::cli
