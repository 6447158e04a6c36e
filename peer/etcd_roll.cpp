#include "peer/etcd_roll.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "tracker/path.h"

namespace spoor::peer {
namespace {

constexpr std::size_t value_bytes_max = 4096;
// They sort next to each other, so that one range holds both.
constexpr const char* alive = "alive";
constexpr const char* members = "members";

std::string percent_encoded(std::string_view text) {
  constexpr std::string_view plain = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  std::string encoded;
  for (const char each : text) {
    if (plain.find(each) != std::string_view::npos) {
      encoded += each;
    } else {
      fmt::format_to(std::back_inserter(encoded), "%{:02X}", static_cast<unsigned char>(each));
    }
  }
  return encoded;
}

std::string folder(const EtcdPlace& place) {
  return fmt::format("{}/{}/", place.prefix, percent_encoded(place.cluster));
}

std::string key_of(const EtcdPlace& place, const char* kind, const RollMember& member) {
  return fmt::format("{}{}/{}/{}", folder(place), kind, percent_encoded(member.node),
                     percent_encoded(member.url));
}

std::string to_value(const RollMember& member) {
  return nlohmann::json{{"node", member.node}, {"url", member.url}, {"instance", member.instance}}.dump();
}

base::Error not_understood(const EtcdEntry& entry, std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error),
          fmt::format(
              "etcd holds '{}', which is no member that can be asked ({}): erase it, or upgrade this node",
              tracker::printable(entry.key), why)};
}

std::string text_member(const nlohmann::json& json, const char* name) {
  const auto found = json.find(name);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

bool is_plain(std::string_view text) {
  return std::ranges::all_of(text, [](char each) { return each > ' ' && each < '\x7f'; });
}

base::Result<RollEntry> parse_member(const EtcdPlace& place, const EtcdEntry& entry) {
  if (entry.value.size() > value_bytes_max) return not_understood(entry, "its value is too long");
  const auto json = nlohmann::json::parse(entry.value, nullptr, false);
  if (!json.is_object()) return not_understood(entry, "its value is no JSON object");
  RollEntry parsed;
  parsed.member = {text_member(json, "node"), text_member(json, "url"), text_member(json, "instance")};
  parsed.mod_revision = entry.mod_revision;
  if (!is_plain(parsed.member.url)) return not_understood(entry, "its URL is none");
  const auto endpoint = parse_endpoint(parsed.member.url);
  if (!endpoint) return not_understood(entry, endpoint.error().message);
  parsed.endpoint = *endpoint;
  if (entry.key != key_of(place, members, parsed.member)) {
    return not_understood(entry, "its value is one of another key");
  }
  return parsed;
}

// The entries under "members", and the lease of each key under "alive".
base::Result<std::vector<RollEntry>> parse_roll(const EtcdPlace& place,
                                                const std::vector<EtcdEntry>& entries) {
  const std::string members_folder = folder(place) + members + '/';
  std::map<std::string, EtcdLease> living;
  std::vector<RollEntry> roll;
  for (const EtcdEntry& entry : entries) {
    if (!entry.key.starts_with(members_folder)) {
      living[entry.key] = entry.lease;
      continue;
    }
    auto parsed = parse_member(place, entry);
    if (!parsed) return parsed.error();
    const auto found = living.find(key_of(place, alive, parsed->member));
    parsed->is_alive = found != living.end();
    if (parsed->is_alive) parsed->lease = found->second;
    roll.push_back(*std::move(parsed));
  }
  return roll;
}

}  // namespace

std::string opener_key(const EtcdPlace& place) { return folder(place) + "opener"; }

EtcdRange roll_range(const EtcdPlace& place) {
  // '0' is the character after '/'.
  return {folder(place) + alive + '/', folder(place) + members + '0'};
}

base::Result<> enter_roll(EtcdClient& client, const EtcdPlace& place, const RollMember& member,
                          EtcdLease lease) {
  const EtcdPut puts[] = {{key_of(place, members, member), to_value(member)},
                          {key_of(place, alive, member), to_value(member), lease}};
  return client.put(puts);
}

base::Result<std::vector<RollEntry>> read_roll(EtcdClient& client, const EtcdPlace& place) {
  const auto entries = client.list(roll_range(place));
  if (!entries) return entries.error();
  return parse_roll(place, *entries);
}

base::Result<bool> strike_from_roll(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry) {
  return client.erase_if(key_of(place, members, entry.member), entry.mod_revision,
                         key_of(place, alive, entry.member));
}

base::Result<std::vector<Endpoint>> list_members(EtcdClient& client, const EtcdPlace& place) {
  const auto roll = read_roll(client, place);
  if (!roll) return roll.error();
  std::vector<Endpoint> endpoints;
  endpoints.reserve(roll->size());
  for (const RollEntry& entry : *roll) endpoints.push_back(entry.endpoint);
  return endpoints;
}

}  // namespace spoor::peer
