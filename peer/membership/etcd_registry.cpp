#include "peer/membership/etcd_registry.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"
#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 4096;
constexpr std::size_t log_bytes_max = 512U << 10U;
constexpr std::uint64_t count_max = std::uint64_t{1} << 53U;
// With "ledger" between them, they sort next to each other: one range holds all three.
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

std::string membership_log_key(const EtcdLocation& location) { return key_prefix(location) + "ledger"; }

std::string key_of(const EtcdLocation& location, const char* kind, const RegisteredMember& member) {
  return fmt::format("{}{}/{}/{}", key_prefix(location), kind, percent_encoded(member.node),
                     percent_encoded(member.url));
}

json to_json(const RegisteredMember& member) {
  return {{"node", member.node}, {"url", member.url}, {"instance", member.instance}};
}

std::uint64_t count_of(const json& object, const char* name) {
  const json& count = object.at(name);
  return count.is_number_unsigned() ? count.get<std::uint64_t>() : count_max + 1;
}

bool is_plausible(const MembershipLog& log) {
  return !log.id.empty() && log.entered <= count_max && log.left <= log.entered &&
         log.recent.size() <= log.left && std::ranges::all_of(log.recent, [](const RegisteredMember& gone) {
           return is_node_name(gone.node);
         });
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
  parsed.mod_revision = entry.mod_revision;
  if (!is_node_name(parsed.member.node)) return not_understood(entry, "its node name is invalid");
  if (!is_plain(parsed.member.url)) return not_understood(entry, "its URL is invalid");
  const auto endpoint = base::parse_endpoint(parsed.member.url);
  if (!endpoint) return not_understood(entry, endpoint.error().message);
  parsed.endpoint = *endpoint;
  if (entry.key != key_of(location, members, parsed.member)) {
    return not_understood(entry, "its value belongs to another key");
  }
  return parsed;
}

// The entries under "members", the lease of each key under "alive", and the membership log between them.
base::Result<Registry> parse_registry(const EtcdLocation& location, const EtcdListing& listing) {
  const std::string members_folder = key_prefix(location) + members + '/';
  std::map<std::string, EtcdLease> living;
  Registry registry;
  registry.cluster_id = listing.cluster_id;
  registry.revision = listing.revision;
  for (const EtcdEntry& entry : listing.entries) {
    if (entry.key == membership_log_key(location)) {
      auto log = MembershipLog::parse(entry.value);
      if (!log) return not_understood(entry, "its value is not a membership log");
      registry.log = *std::move(log);
      registry.log.mod_revision = entry.mod_revision;
      continue;
    }
    if (!entry.key.starts_with(members_folder)) {
      living[entry.key] = entry.lease;
      continue;
    }
    auto parsed = parse_member(location, entry);
    if (!parsed) return parsed.error();
    const auto found = living.find(key_of(location, alive, parsed->member));
    parsed->is_alive = found != living.end();
    if (parsed->is_alive) parsed->lease = found->second;
    registry.entries.push_back(*std::move(parsed));
  }
  return registry;
}

}  // namespace

MembershipLog MembershipLog::with_entry() const {
  MembershipLog more = *this;
  // As random as an instance id, for the same reason.
  if (more.id.empty()) more.id = tracker::InstanceId::random().to_string();
  ++more.entered;
  return more;
}

MembershipLog MembershipLog::without(const RegisteredMember& member) const {
  MembershipLog less = *this;
  // The log was erased by hand after the entry was made.
  if (less.id.empty()) less.id = tracker::InstanceId::random().to_string();
  ++less.left;
  less.entered = std::max(less.entered, less.left);
  less.recent.push_back(member);
  if (less.recent.size() > recent_max) less.recent.erase(less.recent.begin());
  return less;
}

std::string MembershipLog::to_value() const {
  json gone = json::array();
  for (const RegisteredMember& member : recent) gone.push_back(to_json(member));
  return json{{"id", id}, {"entered", entered}, {"left", left}, {"recent", std::move(gone)}}.dump();
}

std::optional<MembershipLog> MembershipLog::parse(std::string_view value) {
  if (value.size() > log_bytes_max) return std::nullopt;
  const auto parsed = json::parse(value, nullptr, false);
  try {
    MembershipLog log;
    log.id = parsed.at("id").get<std::string>();
    log.entered = count_of(parsed, "entered");
    log.left = count_of(parsed, "left");
    for (const json& gone : parsed.at("recent")) {
      log.recent.push_back({gone.at("node").get<std::string>(), gone.at("url").get<std::string>(),
                            gone.at("instance").get<std::string>()});
    }
    return is_plausible(log) ? std::optional(std::move(log)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

bool is_node_name(std::string_view text) {
  constexpr std::size_t bytes_max = 255;
  // A colon would make it an address.
  const auto is_fit = [](char each) { return each > ' ' && each < '\x7f' && each != ':'; };
  return !text.empty() && text.size() <= bytes_max && std::ranges::all_of(text, is_fit);
}

std::string key_prefix(const EtcdLocation& location) {
  return fmt::format("{}/{}/", location.prefix, percent_encoded(location.cluster));
}

std::string cycle_lease_key(const EtcdLocation& location) { return key_prefix(location) + "opener"; }

EtcdRange registry_range(const EtcdLocation& location) {
  // '0' is the character after '/'.
  return {key_prefix(location) + alive + '/', key_prefix(location) + members + '0'};
}

base::Result<bool> register_member(EtcdClient& client, const EtcdLocation& location,
                                   const RegisteredMember& member, EtcdLease lease,
                                   const Registry& registry) {
  const auto before = std::ranges::find_if(registry.entries, [&](const RegistryEntry& entry) {
    return entry.member.node == member.node && entry.member.url == member.url;
  });
  const bool is_there = before != registry.entries.end();
  const bool is_replaced = is_there && before->member.instance != member.instance;
  const std::string key = key_of(location, members, member);
  const std::string value = to_json(member).dump();
  EtcdChanges changes{{{key, value}, {key_of(location, alive, member), value, lease}}};
  std::vector<EtcdCondition> conditions{{key, is_there ? before->mod_revision : 0}};
  if (!is_there || is_replaced || registry.log.id.empty()) {
    const MembershipLog entered = is_replaced ? registry.log.without(before->member) : registry.log;
    changes.puts.push_back({membership_log_key(location), entered.with_entry().to_value()});
    conditions.push_back({membership_log_key(location), registry.log.mod_revision});
  }
  return client.change_if(conditions, changes);
}

base::Result<Registry> read_registry(EtcdClient& client, const EtcdLocation& location) {
  const auto listing = client.list(registry_range(location));
  if (!listing) return listing.error();
  return parse_registry(location, *listing);
}

base::Result<bool> evict_member(EtcdClient& client, const EtcdLocation& location, const RegistryEntry& entry,
                                const MembershipLog& log) {
  const EtcdCondition conditions[] = {{key_of(location, members, entry.member), entry.mod_revision},
                                      {key_of(location, alive, entry.member)},
                                      {membership_log_key(location), log.mod_revision}};
  return client.change_if(conditions, {{{membership_log_key(location), log.without(entry.member).to_value()}},
                                       {key_of(location, members, entry.member)}});
}

}  // namespace spoor::peer
