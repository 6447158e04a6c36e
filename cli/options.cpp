#include "cli/options.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include "cli/format.h"
#include "config/load.h"
#include "config/secret_file.h"

namespace spoor::cli {
namespace {

// The address at which a local client reaches a listener.
std::string reachable(const std::string& address) {
  if (address == "0.0.0.0") return "127.0.0.1";
  if (address == "::") return "::1";
  return address;
}

}  // namespace

base::Result<config::Config> GlobalOptions::load_config() const {
  return config::load(config_file, overrides);
}

base::Result<base::Endpoint> GlobalOptions::own_endpoint() const {
  if (url) return base::parse_endpoint(*url);
  const auto config = load_config();
  if (!config) return config.error();
  return cli::own_endpoint(*config);
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

base::Result<base::Endpoint> own_endpoint(const config::Config& config) {
  const auto& listeners = config.listen;
  const auto is_tcp = [](const config::Listener& each) { return each.unix_path.empty() && each.port != 0; };
  const auto tcp = std::find_if(listeners.begin(), listeners.end(), is_tcp);
  const auto unix_socket = std::find_if(listeners.begin(), listeners.end(),
                                        [](const config::Listener& each) { return !each.unix_path.empty(); });
  base::Endpoint endpoint;
  std::error_code ignored;
  // A configured socket exists while the daemon serves; a port could belong to another process meanwhile.
  const bool has_socket =
      unix_socket != listeners.end() && (tcp == listeners.end() || !config.listen_is_default ||
                                         std::filesystem::is_socket(unix_socket->unix_path, ignored));
  if (has_socket) {
    endpoint.unix_path = unix_socket->unix_path.native();
    return endpoint;
  }
  if (tcp == listeners.end()) {
    return base::Error(std::make_error_code(std::errc::invalid_argument),
                       "the configuration names no fixed port and no Unix socket of the daemon; give --url");
  }
  endpoint.host = reachable(tcp->address);
  endpoint.port = tcp->port;
  endpoint.is_tls = tcp->tls.has_value();
  return endpoint;
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
