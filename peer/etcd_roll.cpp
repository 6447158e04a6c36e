#include "peer/etcd_roll.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
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
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(each));
    }
  }
  return encoded;
}

std::string ledger_key(const EtcdPlace& place) { return folder_of(place) + "ledger"; }

std::string key_of(const EtcdPlace& place, const char* kind, const RollMember& member) {
  return fmt::format("{}{}/{}/{}", folder_of(place), kind, percent_encoded(member.node),
                     percent_encoded(member.url));
}

std::string to_value(const RollMember& member) {
  return nlohmann::json{{"node", member.node}, {"url", member.url}, {"instance", member.instance}}.dump();
}

base::Error not_understood(const EtcdEntry& entry, std::string_view why) {
  return {std::make_error_code(std::errc::protocol_error),
          fmt::format("etcd holds '{}', which can't be understood ({}): erase it, or upgrade this node",
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
  if (!is_node_name(parsed.member.node)) return not_understood(entry, "its node has no name");
  if (!is_plain(parsed.member.url)) return not_understood(entry, "its URL is none");
  const auto endpoint = parse_endpoint(parsed.member.url);
  if (!endpoint) return not_understood(entry, endpoint.error().message);
  parsed.endpoint = *endpoint;
  if (entry.key != key_of(place, members, parsed.member)) {
    return not_understood(entry, "its value is one of another key");
  }
  return parsed;
}

// The entries under "members", the lease of each key under "alive", and the ledger between them.
base::Result<Roll> parse_roll(const EtcdPlace& place, const EtcdListing& listing) {
  const std::string members_folder = folder_of(place) + members + '/';
  std::map<std::string, EtcdLease> living;
  Roll roll;
  roll.cluster_id = listing.cluster_id;
  roll.revision = listing.revision;
  for (const EtcdEntry& entry : listing.entries) {
    if (entry.key == ledger_key(place)) {
      auto ledger = RollLedger::parse(entry.value);
      if (!ledger) return not_understood(entry, "its value is no ledger of members");
      roll.ledger = *std::move(ledger);
      roll.ledger.mod_revision = entry.mod_revision;
      continue;
    }
    if (!entry.key.starts_with(members_folder)) {
      living[entry.key] = entry.lease;
      continue;
    }
    auto parsed = parse_member(place, entry);
    if (!parsed) return parsed.error();
    const auto found = living.find(key_of(place, alive, parsed->member));
    parsed->is_alive = found != living.end();
    if (parsed->is_alive) parsed->lease = found->second;
    roll.entries.push_back(*std::move(parsed));
  }
  return roll;
}

}  // namespace

std::string folder_of(const EtcdPlace& place) {
  return fmt::format("{}/{}/", place.prefix, percent_encoded(place.cluster));
}

std::string opener_key(const EtcdPlace& place) { return folder_of(place) + "opener"; }

EtcdRange roll_range(const EtcdPlace& place) {
  // '0' is the character after '/'.
  return {folder_of(place) + alive + '/', folder_of(place) + members + '0'};
}

base::Result<bool> enter_roll(EtcdClient& client, const EtcdPlace& place, const RollMember& member,
                              EtcdLease lease, const Roll& roll) {
  const auto before = std::ranges::find_if(roll.entries, [&](const RollEntry& entry) {
    return entry.member.node == member.node && entry.member.url == member.url;
  });
  const bool is_there = before != roll.entries.end();
  const bool gives_way = is_there && before->member.instance != member.instance;
  const std::string key = key_of(place, members, member);
  EtcdChanges changes{{{key, to_value(member)}, {key_of(place, alive, member), to_value(member), lease}}};
  std::vector<EtcdCondition> conditions{{key, is_there ? before->mod_revision : 0}};
  if (!is_there || gives_way || roll.ledger.id.empty()) {
    const RollLedger entered = gives_way ? roll.ledger.without(before->member) : roll.ledger;
    changes.puts.push_back({ledger_key(place), entered.with_entry().to_value()});
    conditions.push_back({ledger_key(place), roll.ledger.mod_revision});
  }
  return client.change_if(conditions, changes);
}

base::Result<Roll> read_roll(EtcdClient& client, const EtcdPlace& place) {
  const auto listing = client.list(roll_range(place));
  if (!listing) return listing.error();
  return parse_roll(place, *listing);
}

RegistryAnswer to_registry_answer(const Roll& roll) {
  std::set<std::pair<std::string, std::string>> living;  // nodes and instances
  for (const RollEntry& entry : roll.entries) {
    if (entry.is_alive) living.emplace(entry.member.node, entry.member.instance);
  }
  RegistryAnswer answer;
  std::set<std::string> listed;  // URLs
  for (const RollEntry& entry : roll.entries) {
    const bool has_left = !entry.is_alive && living.contains({entry.member.node, entry.member.instance});
    if (!has_left && listed.insert(entry.member.url).second) answer.listed.push_back(entry.endpoint);
  }
  for (const RollEntry& entry : roll.entries) {
    if (listed.insert(entry.member.url).second) answer.lingering.push_back(entry.endpoint);
  }
  for (const RollMember& gone : roll.ledger.recent) answer.struck.insert(gone.url);
  return answer;
}

base::Result<bool> strike_from_roll(EtcdClient& client, const EtcdPlace& place, const RollEntry& entry,
                                    const RollLedger& ledger) {
  const EtcdCondition conditions[] = {{key_of(place, members, entry.member), entry.mod_revision},
                                      {key_of(place, alive, entry.member)},
                                      {ledger_key(place), ledger.mod_revision}};
  return client.change_if(conditions, {{{ledger_key(place), ledger.without(entry.member).to_value()}},
                                       {key_of(place, members, entry.member)}});
}

}  // namespace spoor::peer
