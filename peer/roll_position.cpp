#include "peer/roll_position.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t text_bytes_max = 4096;

std::optional<RollPosition> parse(std::string_view text) {
  if (text.size() > text_bytes_max) return std::nullopt;
  const auto parsed = json::parse(text, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  try {
    return RollPosition{parsed.at("folder").get<std::string>(), parsed.at("cluster_id").get<std::string>(),
                        parsed.at("revision").get<std::int64_t>(),
                        parsed.at("forgotten").get<std::uint64_t>()};
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

// The names of those forgotten after the first `known`; nothing where not all of them are kept.
std::optional<std::vector<std::string>> forgotten_after(std::uint64_t known, const Forgotten& forgotten) {
  const std::uint64_t since = forgotten.count - known;
  if (since > forgotten.recent.size()) return std::nullopt;
  return std::vector<std::string>(forgotten.recent.end() - static_cast<std::ptrdiff_t>(since),
                                  forgotten.recent.end());
}

}  // namespace

RollPosition RollPosition::of(const Roll& roll, const EtcdPlace& place) {
  return {folder_of(place), roll.cluster_id, roll.revision, roll.forgotten.count};
}

std::string RollPosition::to_text() const {
  return json{
      {"folder", folder}, {"cluster_id", cluster_id}, {"revision", revision}, {"forgotten", forgotten}}
      .dump();
}

std::vector<std::string> gaps_since(std::string_view stored, const Roll& roll, const EtcdPlace& place,
                                    const tracker::Cursors& cursors) {
  const RollPosition now = RollPosition::of(roll, place);
  const auto before = parse(stored);
  if (!before || before->folder != now.folder) {
    if (stored.empty() && cursors.empty()) return {};
    return {"the members in etcd were never read before"};
  }
  if (before->cluster_id != now.cluster_id || before->revision > now.revision ||
      before->forgotten > now.forgotten) {
    return {"etcd is not the one it was: members that it knew may be missing"};
  }
  const auto names = forgotten_after(before->forgotten, roll.forgotten);
  if (!names) {
    return {fmt::format("{} members in etcd were forgotten since the last scan",
                        now.forgotten - before->forgotten)};
  }
  std::vector<std::string> gaps;
  for (const std::string& name : *names) {
    if (!cursors.contains(name))
      gaps.push_back(fmt::format("'{}' was a member in etcd and forgotten before it was ever read", name));
  }
  return gaps;
}

}  // namespace spoor::peer
