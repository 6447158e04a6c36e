#include "peer/membership/etcd_members.h"

#include <fmt/core.h>

#include <set>
#include <utility>
#include <vector>

namespace spoor::peer {

SourceListing to_listing(const Registry& registry, const std::string& own_url) {
  std::set<std::pair<std::string, std::string>> alive;  // nodes and instances
  std::set<std::string> alive_urls;
  for (const RegistryEntry& entry : registry.entries) {
    if (!entry.is_alive()) continue;
    alive.emplace(entry.member.node, entry.member.instance);
    alive_urls.insert(entry.endpoint.to_string());
  }
  SourceListing listing{.source = "etcd", .listed = {}};
  std::vector<base::Endpoint> listed;
  std::set<std::string> urls;
  for (const RegistryEntry& entry : registry.entries) {
    const std::string url = entry.endpoint.to_string();
    listing.homes[entry.member.node].insert(url);
    if (const auto instance = tracker::InstanceId::parse(entry.member.instance))
      listing.registered[{entry.member.node, *instance}] |= entry.is_alive();
    if (!alive_urls.contains(url)) listing.not_alive.insert(url);
    // It is alive at another URL.
    const bool has_moved = !entry.is_alive() && alive.contains({entry.member.node, entry.member.instance});
    // The daemon of this node is requested at its local endpoint: its advertised URL may be unreachable here.
    if (!has_moved && urls.insert(url).second && entry.member.url != own_url)
      listed.push_back(entry.endpoint);
  }
  listing.listed = urls_of(listed, listing.problem);
  return listing;
}

SourceListing list_members(EtcdClient& client, const EtcdLocation& location, const std::string& own_url) {
  const auto registry = read_registry(client, location);
  if (registry && !registry->entries.empty()) return to_listing(*registry, own_url);
  return {.source = "etcd",
          .listed = {},
          .problem = registry ? fmt::format("no node has registered under '{}' yet", key_prefix(location))
                              : registry.error().message};
}

}  // namespace spoor::peer
