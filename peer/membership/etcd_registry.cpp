#include "peer/membership/etcd_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "base/printable.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 4096;
// They sort next to each other: one range holds both.
constexpr const char* alive = "alive";
constexpr const char* members = "members";

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char each : text) {
    if (plain.find(each) != std::string_view::npos) {
      encoded += each;
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(each));
    }
  }
  return encoded;
}

// Of earlier versions: between the others.
std::string ledger_key(const EtcdLocation& location) { return key_prefix(location) + "ledger"; }

std::string key_of(const EtcdLocation& location, const char* kind, const RegisteredMember& member) {
  return fmt::format("{}{}/{}/{}", key_prefix(location), kind, percent_encoded(member.node),
                     percent_encoded(member.url));
}

json to_json(const RegisteredMember& member) {
  return {{"node", member.node}, {"url", member.url}, {"instance", member.instance}};
}

base::Error not_understood(const EtcdEntry& entry, std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error),
          fmt::format("the key '{}' in etcd is invalid ({}): erase it, or upgrade this node",
                      base::printable(entry.key), why)};
}

std::string text_member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char each) { return each > ' ' && each < '\x7f'; });
}

base::Result<RegistryEntry> parse_member(const EtcdLocation& location, const EtcdEntry& entry) {
  if (entry.value.size() > value_bytes_max) return not_understood(entry, "its value is too long");
  const auto value = json::parse(entry.value, nullptr, false);
  if (!value.is_object()) return not_understood(entry, "its value is not a JSON object");
  RegistryEntry parsed;
  parsed.member = {text_member(value, "node"), text_member(value, "url"), text_member(value, "instance")};
  parsed.lease = entry.lease;
  if (!tracker::is_node_name(parsed.member.node)) return not_understood(entry, "its node name is invalid");
  if (!is_plain(parsed.member.url)) return not_understood(entry, "its URL is invalid");
  const auto endpoint = base::parse_endpoint(parsed.member.url);
  if (!endpoint) return not_understood(entry, endpoint.error().message);
  parsed.endpoint = *endpoint;
  if (entry.key != key_of(location, members, parsed.member)) {
    return not_understood(entry, "its value belongs to another key");
  }
  return parsed;
}

// The entries under "members", and the lease of each key under "alive".
base::Result<std::vector<RegistryEntry>> parse_registry(const EtcdLocation& location,
                                                        std::span<const EtcdEntry> listed) {
  const std::string members_folder = key_prefix(location) + members + '/';
  std::map<std::string, EtcdLease> living;
  std::vector<RegistryEntry> registry;
  for (const EtcdEntry& entry : listed) {
    if (entry.key == ledger_key(location)) continue;
    if (!entry.key.starts_with(members_folder)) {
      living[entry.key] = entry.lease;
      continue;
    }
    auto parsed = parse_member(location, entry);
    if (!parsed) return parsed.error();
    const auto found = living.find(key_of(location, alive, parsed->member));
    if (found != living.end()) parsed->alive_lease = found->second;
    registry.push_back(*std::move(parsed));
  }
  return registry;
}

}  // namespace

std::string key_prefix(const EtcdLocation& location) {
  return fmt::format("{}/{}/", location.prefix, percent_encoded(location.cluster));
}

EtcdRange registry_range(const EtcdLocation& location) {
  // '0' is the character after '/'.
  return {key_prefix(location) + alive + '/', key_prefix(location) + members + '0'};
}

base::Result<> register_member(EtcdClient& client, const EtcdLocation& location,
                               const RegisteredMember& member, EtcdLease lease,
                               std::optional<EtcdLease> alive_lease) {
  const std::string value = to_json(member).dump();
  std::vector<EtcdPut> puts{{key_of(location, members, member), value, lease}};
  if (alive_lease) puts.push_back({key_of(location, alive, member), value, *alive_lease});
  return client.put(puts);
}

base::Result<std::vector<RegistryEntry>> read_registry(EtcdClient& client, const EtcdLocation& location) {
  const auto listed = client.list(registry_range(location));
  if (!listed) return listed.error();
  return parse_registry(location, *listed);
}

SourceListing to_listing(std::span<const RegistryEntry> registry, const std::string& own_url) {
  std::set<std::pair<std::string, std::string>> alive;  // nodes and instances
  std::set<std::string> alive_urls;
  for (const RegistryEntry& entry : registry) {
    if (!entry.is_alive()) continue;
    alive.emplace(entry.member.node, entry.member.instance);
    alive_urls.insert(entry.endpoint.to_string());
  }
  SourceListing listing{.source = "etcd", .listed = {}};
  std::vector<base::Endpoint> listed;
  std::set<std::string> urls;
  for (const RegistryEntry& entry : registry) {
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
  if (registry && !registry->empty()) return to_listing(*registry, own_url);
  return {.source = "etcd",
          .listed = {},
          .problem = registry ? fmt::format("no node has registered under '{}' yet", key_prefix(location))
                              : registry.error().message};
}

}  // namespace spoor::peer
