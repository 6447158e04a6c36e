#include "cli/etcd_connection.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "config/secret_file.h"

namespace spoor::cli {
namespace {

constexpr std::chrono::milliseconds exchange_max{2'000};

}  // namespace

base::Result<std::unique_ptr<EtcdConnection>> EtcdConnection::open(const config::Config& config,
                                                                   const base::Clock& clock) {
  auto secrets = config::etcd_secrets(*config.peers.etcd);
  if (!secrets) return secrets.error();
  const auto credentials = peer::make_credentials({}, secrets->tls);
  if (!credentials) return credentials.error();
  return std::unique_ptr<EtcdConnection>(
      new EtcdConnection(config, *credentials, std::move(secrets->secret), clock));
}

EtcdConnection::EtcdConnection(const config::Config& config, const peer::Credentials& credentials,
                               std::string password, const base::Clock& clock)
    : location{config.peers.etcd->prefix, config.node.cluster},
      transport({.credentials = credentials,
                 .timeout = std::min(exchange_max, config.peers.timeout),
                 .body_bytes_max = peer::EtcdClient::answer_bytes_max}),
      client(transport, clock, config.peers.etcd->endpoints,
             {.user = config.peers.etcd->user,
              .password = std::move(password),
              .operation_max = config.peers.timeout}) {}

}  // namespace spoor::cli
