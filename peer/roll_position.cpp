#include "peer/roll_position.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t text_bytes_max = 4096;

std::optional<RollPosition> parse(std::string_view text) {
  if (text.size() > text_bytes_max) return std::nullopt;
  const auto parsed = json::parse(text, nullptr, false);
  try {
    return RollPosition{parsed.at("folder").get<std::string>(),    parsed.at("cluster_id").get<std::string>(),
                        parsed.at("revision").get<std::int64_t>(), parsed.at("ledger_id").get<std::string>(),
                        parsed.at("left").get<std::uint64_t>(),    parsed.at("erased").get<std::int64_t>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// Why this is not the roll that it was then, or nothing.
const char* difference(const RollPosition& then, const RollPosition& now) {
  if (then.ledger_id != now.ledger_id || then.cluster_id != now.cluster_id) {
    return "etcd was set up anew: members that it knew may be missing";
  }
  if (then.revision > now.revision || then.left > now.left) {
    return "etcd is in an older state than it was: members that it knew may be missing";
  }
  if (then.erased != now.erased) return "somebody erased members in etcd by hand";
  return nullptr;
}

// Whether its marks are asked for by what is known of it without the ledger.
bool is_covered(const RollMember& gone, const Roll& roll, const tracker::Cursors& cursors) {
  const auto is_it = [&](const RollEntry& entry) {
    return entry.member.node == gone.node && entry.member.instance == gone.instance;
  };
  const auto cursor = cursors.find(gone.node);
  return (cursor != cursors.end() && cursor->second.instance.to_string() == gone.instance) ||
         std::ranges::any_of(roll.entries, is_it);
}

}  // namespace

RollPosition RollPosition::of(const Roll& roll, const EtcdPlace& place) {
  const RollLedger& ledger = roll.ledger;
  return {
      folder_of(place), roll.cluster_id,
      roll.revision,    ledger.id,
      ledger.left,      static_cast<std::int64_t>(ledger.entered - ledger.left) - std::ssize(roll.entries)};
}

std::string RollPosition::to_text() const {
  return json{{"folder", folder},     {"cluster_id", cluster_id},
              {"revision", revision}, {"ledger_id", ledger_id},
              {"left", left},         {"erased", erased}}
      .dump();
}

std::vector<std::string> gaps_since(std::string_view stored, const Roll& roll, const EtcdPlace& place,
                                    const tracker::Cursors& cursors) {
  const RollPosition now = RollPosition::of(roll, place);
  const auto then = parse(stored);
  if (!then || then->folder != now.folder) {
    if (stored.empty() && cursors.empty()) return {};
    return {"the members in etcd were never read before"};
  }
  if (const char* const why = difference(*then, now)) return {why};
  const auto& recent = roll.ledger.recent;
  const std::uint64_t since = now.left - then->left;
  if (since > recent.size()) return {fmt::format("{} members left etcd since the last scan", since)};
  std::vector<std::string> gaps;
  for (const RollMember& gone : std::span(recent).last(since)) {
    if (is_covered(gone, roll, cursors)) continue;
    gaps.push_back(fmt::format("'{}' was a member in etcd, and left before it was read", gone.node));
  }
  return gaps;
}

}  // namespace spoor::peer
