#include "peer/roll_ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tracker/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 512U << 10U;
constexpr std::uint64_t count_max = std::uint64_t{1} << 53U;

std::uint64_t count_of(const json& object, const char* name) {
  const auto count = object.at(name).get<std::uint64_t>();
  return object.at(name).is_number_unsigned() ? count : count_max + 1;
}

bool is_plausible(const RollLedger& ledger) {
  return !ledger.id.empty() && ledger.entered <= count_max && ledger.left <= ledger.entered &&
         ledger.recent.size() <= ledger.left &&
         std::ranges::all_of(ledger.recent, [](const RollMember& gone) { return is_node_name(gone.node); });
}

}  // namespace

RollLedger RollLedger::with_entry() const {
  RollLedger more = *this;
  // As random as an instance has to be, for the same reason.
  if (more.id.empty()) more.id = tracker::InstanceId::random().to_string();
  ++more.entered;
  return more;
}

RollLedger RollLedger::without(const RollMember& member) const {
  RollLedger less = *this;
  // The ledger was erased by hand, and knows nothing of the entry.
  if (less.id.empty()) less.id = tracker::InstanceId::random().to_string();
  ++less.left;
  less.entered = std::max(less.entered, less.left);
  less.recent.push_back(member);
  if (less.recent.size() > recent_max) less.recent.erase(less.recent.begin());
  return less;
}

std::string RollLedger::to_value() const {
  json gone = json::array();
  for (const RollMember& member : recent) {
    gone.push_back({{"node", member.node}, {"url", member.url}, {"instance", member.instance}});
  }
  return json{{"id", id}, {"entered", entered}, {"left", left}, {"recent", std::move(gone)}}.dump();
}

std::optional<RollLedger> RollLedger::parse(std::string_view value) {
  if (value.size() > value_bytes_max) return std::nullopt;
  const auto parsed = json::parse(value, nullptr, false);
  try {
    RollLedger ledger;
    ledger.id = parsed.at("id").get<std::string>();
    ledger.entered = count_of(parsed, "entered");
    ledger.left = count_of(parsed, "left");
    for (const json& gone : parsed.at("recent")) {
      ledger.recent.push_back({gone.at("node").get<std::string>(), gone.at("url").get<std::string>(),
                               gone.at("instance").get<std::string>()});
    }
    return is_plausible(ledger) ? std::optional(std::move(ledger)) : std::nullopt;
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

}  // namespace spoor::peer
