#include "peer/membership/etcd_members.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <utility>

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t text_bytes_max = 4096;

// The state of the registry that a scan has read; stored together with the results of that scan.
struct Checkpoint {
  std::string folder;  // the prefix of its keys
  std::string cluster_id;
  std::int64_t revision = 0;
  std::string log_id;
  std::uint64_t left = 0;
  // Entries erased by hand: neither in the registry nor counted as left.
  std::int64_t erased = 0;
};

std::optional<Checkpoint> parse(std::string_view text) {
  if (text.size() > text_bytes_max) return std::nullopt;
  const auto parsed = json::parse(text, nullptr, false);
  try {
    return Checkpoint{parsed.at("folder").get<std::string>(),    parsed.at("cluster_id").get<std::string>(),
                      parsed.at("revision").get<std::int64_t>(), parsed.at("ledger_id").get<std::string>(),
                      parsed.at("left").get<std::uint64_t>(),    parsed.at("erased").get<std::int64_t>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// Why the registry does not continue that of `then`; null: it does.
const char* difference(const Checkpoint& then, const Checkpoint& now) {
  if (then.log_id != now.log_id || then.cluster_id != now.cluster_id) {
    return "etcd was set up anew: members that it listed may be missing";
  }
  if (then.revision > now.revision || then.left > now.left) {
    return "etcd is in an older state than it was: members that it listed may be missing";
  }
  if (then.erased != now.erased) return "members in etcd were erased by hand";
  return nullptr;
}

// Whether its marks need no gap here: its cursor becomes a gap, or its entry is requested.
bool is_covered(const RegisteredMember& gone, const Registry& last_known, const tracker::Cursors& cursors) {
  const auto is_it = [&](const RegistryEntry& entry) {
    return entry.member.node == gone.node && entry.member.instance == gone.instance;
  };
  const auto cursor = cursors.find(gone.node);
  return (cursor != cursors.end() && cursor->second.instance.to_string() == gone.instance) ||
         std::ranges::any_of(last_known.entries, is_it);
}

Checkpoint checkpoint_of(const Registry& last_known, const EtcdLocation& location) {
  const MembershipLog& log = last_known.log;
  return {key_prefix(location),
          last_known.cluster_id,
          last_known.revision,
          log.id,
          log.left,
          static_cast<std::int64_t>(log.entered - log.left) - std::ssize(last_known.entries)};
}

std::string to_text(const Checkpoint& checkpoint) {
  return json{{"folder", checkpoint.folder},     {"cluster_id", checkpoint.cluster_id},
              {"revision", checkpoint.revision}, {"ledger_id", checkpoint.log_id},
              {"left", checkpoint.left},         {"erased", checkpoint.erased}}
      .dump();
}

// Why marks may be missing that no peer and no cursor reports: since `stored`, a member registered,
// acknowledged marks and left, or the registry is another or an older one. A member with a cursor of the same
// instance needs no entry here: it becomes a gap when it is not found; neither does a registered one, which
// is expected.
//
// `stored` is the result of to_text(), or empty; the cursors are empty before the first scan.
std::vector<std::string> gaps_since(std::string_view stored, const Registry& last_known,
                                    const EtcdLocation& location, const tracker::Cursors& cursors) {
  const Checkpoint now = checkpoint_of(last_known, location);
  const auto then = parse(stored);
  if (!then || then->folder != now.folder) {
    if (stored.empty() && cursors.empty()) return {};
    return {"the members in etcd were never read before"};
  }
  if (const char* const why = difference(*then, now)) return {why};
  const auto& recent = last_known.log.recent;
  const std::uint64_t since = now.left - then->left;
  if (since > recent.size()) return {fmt::format("{} members left etcd since the last scan", since)};
  std::vector<std::string> gaps;
  for (const RegisteredMember& gone : std::span(recent).last(since)) {
    if (is_covered(gone, last_known, cursors)) continue;
    gaps.push_back(fmt::format("'{}' was a member in etcd, and left before it was read", gone.node));
  }
  return gaps;
}

}  // namespace

SourceListing to_listing(const Registry& registry, const EtcdLocation& location, const LastScan& last,
                         const RegisteredMember& self) {
  std::set<std::pair<std::string, std::string>> alive;  // nodes and instances
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
  listing.checkpoint = to_text(checkpoint_of(registry, location));
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
