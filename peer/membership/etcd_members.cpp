#include "peer/membership/etcd_members.h"

#include <fmt/core.h>

#include <set>
#include <utility>

#include "peer/membership/membership_checkpoint.h"

namespace spoor::peer {
namespace {

using NodeInstance = std::pair<std::string, std::string>;

}  // namespace

SourceListing to_listing(const Registry& registry, const EtcdLocation& location, const LastScan& last,
                         const RegisteredMember& self) {
  std::set<NodeInstance> alive;
  std::set<std::string> alive_urls;
  for (const RegistryEntry& entry : registry.entries) {
    if (!entry.is_alive) continue;
    alive.emplace(entry.member.node, entry.member.instance);
    alive_urls.insert(entry.endpoint.to_string());
  }
  SourceListing listing{.source = "etcd", .listed = {}};
  std::vector<base::Endpoint> listed;
  std::vector<base::Endpoint> departed;
  std::set<std::string> urls;
  const auto has_departed = [&](const RegistryEntry& entry) {
    return !entry.is_alive && alive.contains({entry.member.node, entry.member.instance});
  };
  for (const RegistryEntry& entry : registry.entries) {
    const bool is_own_url = entry.member.url == self.url;
    // A daemon with a duplicate node name is expected like any other.
    const bool is_self = is_own_url && entry.member.node == self.node;
    const auto instance = tracker::InstanceId::parse(entry.member.instance);
    listing.expected.push_back(
        {entry.member.node, entry.endpoint, instance && !is_self ? *instance : tracker::InstanceId()});
    const std::string url = entry.endpoint.to_string();
    if (!alive_urls.contains(url)) listing.not_alive.insert(url);
    if (has_departed(entry) || !urls.insert(entry.member.url).second) continue;
    // The daemon of this node is requested at its local endpoint: its advertised URL may be unreachable here.
    if (!is_own_url) listed.push_back(entry.endpoint);
  }
  for (const RegistryEntry& entry : registry.entries) {
    if (urls.insert(entry.member.url).second) departed.push_back(entry.endpoint);
  }
  listing.listed = urls_of(listed, listing.problem);
  listing.departed = urls_of(departed, listing.problem);
  for (const RegisteredMember& gone : registry.log.recent) listing.evicted.insert(gone.url);
  listing.gaps = gaps_since(last.checkpoint, registry, location, last.cursors);
  listing.checkpoint = MembershipCheckpoint::of(registry, location).to_text();
  return listing;
}

EtcdMembers::EtcdMembers(EtcdClient& client, Options options)
    : client_(client), options_(std::move(options)) {}

std::vector<SourceListing> EtcdMembers::list(const LastScan& last) {
  const auto registry = read_registry(client_, options_.location);
  has_responded_ = registry.has_value();
  SourceListing listing{.source = "etcd", .listed = {}};
  if (!registry) {
    listing.problem = registry.error().message;
  } else if (registry->log.id.empty()) {
    listing.problem = fmt::format("no node has registered under '{}' yet", key_prefix(options_.location));
  } else {
    listing = to_listing(*registry, options_.location, last, options_.self);
  }
  listing.forget_after = options_.forget_after;
  return {std::move(listing)};
}

}  // namespace spoor::peer
