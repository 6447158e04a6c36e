#include "peer/etcd_forgotten.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 128U << 10U;
constexpr std::uint64_t count_max = std::uint64_t{1} << 53U;

}  // namespace

Forgotten Forgotten::with(const std::string& node) const {
  Forgotten more = *this;
  ++more.count;
  more.recent.push_back(node);
  if (more.recent.size() > recent_max) more.recent.erase(more.recent.begin());
  return more;
}

std::string Forgotten::to_value() const { return json{{"count", count}, {"recent", recent}}.dump(); }

std::optional<Forgotten> Forgotten::parse(std::string_view value) {
  if (value.size() > value_bytes_max) return std::nullopt;
  const auto parsed = json::parse(value, nullptr, false);
  if (!parsed.is_object()) return std::nullopt;
  const auto count = parsed.find("count");
  const auto recent = parsed.find("recent");
  if (count == parsed.end() || !count->is_number_unsigned() || recent == parsed.end() || !recent->is_array())
    return std::nullopt;
  Forgotten forgotten;
  forgotten.count = count->get<std::uint64_t>();
  for (const json& node : *recent) {
    if (!node.is_string()) return std::nullopt;
    forgotten.recent.push_back(node.get<std::string>());
  }
  if (forgotten.count > count_max || forgotten.recent.size() > forgotten.count) return std::nullopt;
  return forgotten;
}

}  // namespace spoor::peer
