#include "config/derived.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>

#include "base/checksum.h"
#include "base/directory_overlap.h"
#include "base/printable.h"

namespace spoor::config {
namespace {

// Whether other nodes reach a listener at this IP address: neither a wildcard nor loopback.
bool is_specific(const std::string& address) {
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1)
    return v4.s_addr != INADDR_ANY && (ntohl(v4.s_addr) >> 24U) != IN_LOOPBACKNET;
  return ::inet_pton(AF_INET6, address.c_str(), &v6) == 1 && !IN6_IS_ADDR_UNSPECIFIED(&v6) &&
         !IN6_IS_ADDR_LOOPBACK(&v6) && !IN6_IS_ADDR_V4MAPPED(&v6);
}

// The address at which a local client reaches a listener.
std::string reachable(const std::string& address) {
  if (address == "0.0.0.0") return "127.0.0.1";
  if (address == "::") return "::1";
  return address;
}

}  // namespace

std::optional<std::string> advertised_url(const Config& config) {
  if (config.peers.etcd && !config.peers.etcd->url.empty()) return config.peers.etcd->url;
  for (const Listener& listener : config.listen) {
    if (listener.port == 0 || !is_specific(listener.address)) continue;
    base::Endpoint endpoint{listener.address, listener.port, {}};
    endpoint.is_tls = listener.tls.has_value();
    return endpoint.to_string();
  }
  return std::nullopt;
}

base::Result<base::Endpoint> own_endpoint(const Config& config) {
  const auto& listeners = config.listen;
  const auto tcp = std::ranges::find_if(
      listeners, [](const Listener& each) { return each.unix_path.empty() && each.port != 0; });
  const auto unix_socket =
      std::ranges::find_if(listeners, [](const Listener& each) { return !each.unix_path.empty(); });
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

std::uint64_t members_digest(const Config::Peers& peers) {
  std::string text = peers.dns_tls ? "tls\n" : "\n";
  for (const auto& endpoint : peers.static_endpoints) text += endpoint.to_string() + '\n';
  for (const auto& name : peers.dns) text += "dns " + name.to_string() + '\n';
  for (const auto& server : peers.dns_servers) text += "server " + server.to_string() + '\n';
  if (peers.etcd) {
    for (const auto& endpoint : peers.etcd->endpoints) text += "etcd " + endpoint.to_string() + '\n';
    text += peers.etcd->prefix;
  }
  return base::checksum(text);
}

std::chrono::nanoseconds known_for(const Config::Peers& peers) {
  if (peers.dns.empty() && !peers.etcd) return std::chrono::nanoseconds::max();
  constexpr std::chrono::minutes least(2);  // of some rounds of requests to members
  return std::max<std::chrono::nanoseconds>(peers.forget_after / 2, least);
}

std::vector<std::filesystem::path> watched_drives(const Config& config) {
  return config.watch.all_drives ? config.drives : config.watch.drives;
}

std::vector<std::filesystem::path> unwatched_drives(const Config& config) {
  std::vector<std::filesystem::path> drives = config.drives;
  std::erase_if(drives, [watched = watched_drives(config)](const auto& drive) {
    return std::ranges::find(watched, drive) != watched.end();
  });
  return drives;
}

std::vector<std::string> find_drive_overlaps(const Config& config) {
  constexpr std::size_t bytes_max = 10'000;  // two paths and the text around them
  std::vector<std::string> texts;
  for (const base::DirectoryOverlap& overlap : base::find_overlaps(config.drives))
    texts.push_back("drives: " + base::printable(base::overlap_text(overlap, config.drives), bytes_max));
  return texts;
}

tracker::NamespaceRules namespace_rules(const Config& config) {
  return tracker::NamespaceRules(
      {config.name_space.exclude, config.name_space.bucket_names == BucketNames::s3});
}

}  // namespace spoor::config
