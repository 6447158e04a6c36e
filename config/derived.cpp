#include "config/derived.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

namespace spoor::config {
namespace {

bool is_specific(const in_addr& address) {
  const std::uint32_t bits = ntohl(address.s_addr);
  return bits != INADDR_ANY && (bits >> 24U) != IN_LOOPBACKNET;
}

bool is_specific(const in6_addr& address) {
  return !IN6_IS_ADDR_UNSPECIFIED(&address) && !IN6_IS_ADDR_LOOPBACK(&address) &&
         !IN6_IS_ADDR_V4MAPPED(&address);
}

}  // namespace

std::optional<std::string> advertised_url(const Config& config) {
  if (config.peers.etcd && !config.peers.etcd->url.empty()) return config.peers.etcd->url;
  for (const Listener& listener : config.listen) {
    if (listener.port == 0) continue;
    const char* const scheme = listener.tls ? "https" : "http";
    in_addr v4{};
    in6_addr v6{};
    if (::inet_pton(AF_INET, listener.address.c_str(), &v4) == 1 && is_specific(v4)) {
      return fmt::format("{}://{}:{}", scheme, listener.address, listener.port);
    }
    if (::inet_pton(AF_INET6, listener.address.c_str(), &v6) == 1 && is_specific(v6)) {
      return fmt::format("{}://[{}]:{}", scheme, listener.address, listener.port);
    }
  }
  return std::nullopt;
}

tracker::NamespaceRules namespace_rules(const Config& config) {
  return tracker::NamespaceRules(
      {config.name_space.exclude, config.name_space.bucket_names == BucketNames::s3});
}

}  // namespace spoor::config
