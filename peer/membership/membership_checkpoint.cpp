#include "peer/membership/membership_checkpoint.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t text_bytes_max = 4096;

std::optional<MembershipCheckpoint> parse(std::string_view text) {
  if (text.size() > text_bytes_max) return std::nullopt;
  const auto parsed = json::parse(text, nullptr, false);
  try {
    return MembershipCheckpoint{
        parsed.at("folder").get<std::string>(),    parsed.at("cluster_id").get<std::string>(),
        parsed.at("revision").get<std::int64_t>(), parsed.at("ledger_id").get<std::string>(),
        parsed.at("left").get<std::uint64_t>(),    parsed.at("erased").get<std::int64_t>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// Why the registry does not continue that of `then`; null: it does.
const char* difference(const MembershipCheckpoint& then, const MembershipCheckpoint& now) {
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

}  // namespace

MembershipCheckpoint MembershipCheckpoint::of(const Registry& last_known, const EtcdLocation& location) {
  const MembershipLog& log = last_known.log;
  return {key_prefix(location),
          last_known.cluster_id,
          last_known.revision,
          log.id,
          log.left,
          static_cast<std::int64_t>(log.entered - log.left) - std::ssize(last_known.entries)};
}

std::string MembershipCheckpoint::to_text() const {
  return json{{"folder", folder}, {"cluster_id", cluster_id}, {"revision", revision}, {"ledger_id", log_id},
              {"left", left},     {"erased", erased}}
      .dump();
}

std::vector<std::string> gaps_since(std::string_view stored, const Registry& last_known,
                                    const EtcdLocation& location, const tracker::Cursors& cursors) {
  const MembershipCheckpoint now = MembershipCheckpoint::of(last_known, location);
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

}  // namespace spoor::peer
