#include "tracker/cycles/member_marks.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/number.h"

namespace spoor::tracker {
namespace {

constexpr std::string_view joined_kind = "joined-";
constexpr std::string_view retired_kind = "retired-";  // followed by a run and another '-'
// A name may contain a '/'. A space is in no name.
constexpr char slash_in_name = ' ';
// Before the names "." and "..", which no path may have as a component. A ':' is in no name.
constexpr char before_dots = ':';

// Removes the prefix; returns whether it was there.
bool take(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

std::optional<PeerId> parse_id(std::string_view text) {
  const auto end = text.find('/');
  if (end == std::string_view::npos || end + 1 == text.size()) return std::nullopt;
  const auto instance = InstanceId::parse(text.substr(0, end));
  if (!instance) return std::nullopt;
  const std::size_t name_at = end + (text[end + 1] == before_dots ? 2 : 1);
  PeerId id{std::string(text.substr(name_at)), *instance};
  for (char& each : id.name) each = each == slash_in_name ? '/' : each;
  if (instance->is_none() || !is_node_name(id.name)) return std::nullopt;  // no such tracker can be read
  return id;
}

// Returns false if the record has no meaning here.
bool note(std::string_view key, std::uint64_t number, MemberMarks& found) {
  if (!take(key, TreeMarks::member_top) || !take(key, "/")) return false;
  if (take(key, joined_kind)) {
    auto id = parse_id(key);
    if (!id) return false;
    found.joined.emplace(*std::move(id), number);
    return true;
  }
  if (!take(key, retired_kind)) return false;
  const auto end = key.find('-');
  const auto run = base::parse_number<std::uint64_t>(key.substr(0, end));
  if (end == std::string_view::npos || !run || number > CycleId::value_max) return false;
  auto id = parse_id(key.substr(end + 1));
  if (!id) return false;
  Retired& retired = found.retired[*std::move(id)];
  retired = std::max(retired, Retired{*run, {number}});
  return true;
}

Mark member_mark(const std::string& kind, const PeerId& id, std::uint64_t number) {
  std::string name = id.name;
  for (char& each : name) each = each == '/' ? slash_in_name : each;
  if (name == "." || name == "..") name.insert(name.begin(), before_dots);
  return {fmt::format("{}/{}{}/{}/{}", TreeMarks::member_top, kind, id.instance.to_string(), name, number),
          MarkKind::tree};
}

}  // namespace

Mark joined_mark(const Joined& joined) {
  return member_mark(std::string(joined_kind), joined.id, joined.run);
}

Mark retired_mark(const PeerId& id, const Retired& retired) {
  return member_mark(fmt::format("{}{}-", retired_kind, retired.run), id, retired.adopted_from.value);
}

MemberMarks member_marks(const MarkSet& marks) {
  MemberMarks found;
  for (const auto& [key, number] : marks.tree_marks().members()) {
    if (!note(key, number, found)) found.is_incomplete = true;
  }
  return found;
}

}  // namespace spoor::tracker
