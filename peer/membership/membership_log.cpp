#include "peer/membership/membership_log.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "tracker/cycles/ids.h"

namespace spoor::peer {
namespace {

using nlohmann::json;

constexpr std::size_t value_bytes_max = 512U << 10U;
constexpr std::uint64_t count_max = std::uint64_t{1} << 53U;

std::uint64_t count_of(const json& object, const char* name) {
  const auto count = object.at(name).get<std::uint64_t>();
  return object.at(name).is_number_unsigned() ? count : count_max + 1;
}

bool is_plausible(const MembershipLog& log) {
  return !log.id.empty() && log.entered <= count_max && log.left <= log.entered &&
         log.recent.size() <= log.left && std::ranges::all_of(log.recent, [](const RegisteredMember& gone) {
           return is_node_name(gone.node);
         });
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
  for (const RegisteredMember& member : recent) {
    gone.push_back({{"node", member.node}, {"url", member.url}, {"instance", member.instance}});
  }
  return json{{"id", id}, {"entered", entered}, {"left", left}, {"recent", std::move(gone)}}.dump();
}

std::optional<MembershipLog> MembershipLog::parse(std::string_view value) {
  if (value.size() > value_bytes_max) return std::nullopt;
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

}  // namespace spoor::peer
