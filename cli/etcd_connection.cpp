#include "cli/etcd_connection.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "peer/endpoint.h"

namespace spoor::cli {
namespace {

constexpr std::chrono::milliseconds exchange_max{2'000};

std::vector<peer::Endpoint> parse_all(const std::vector<std::string>& urls) {
  std::vector<peer::Endpoint> endpoints;
  endpoints.reserve(urls.size());
  for (const std::string& url : urls) endpoints.push_back(peer::parse_endpoint(url).value());
  return endpoints;
}

}  // namespace

EtcdConnection::EtcdConnection(const config::Config& config, const base::Clock& clock)
    : place{config.peers.etcd->prefix, config.node.cluster},
      transport({.timeout = std::min(exchange_max, config.peers.timeout),
                 .body_bytes_max = peer::EtcdClient::answer_bytes_max}),
      client(transport, clock, parse_all(config.peers.etcd->endpoints),
             {.operation_max = config.peers.timeout}) {}

}  // namespace spoor::cli
