#include "tracker/cycles/member_marks.h"

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace spoor::tracker {
namespace {

constexpr std::string_view kind = "joined-";
// A name may contain a '/'. A space is in no name.
constexpr char slash_in_name = ' ';
// Before the names "." and "..", which no path may have as a component. A ':' is in no name.
constexpr char before_dots = ':';

std::optional<PeerId> parse(std::string_view key) {
  const std::size_t begin = TreeMarks::member_top.size() + 1;
  if (key.size() < begin + kind.size() || key.substr(begin, kind.size()) != kind) return std::nullopt;
  key.remove_prefix(begin + kind.size());
  const auto end = key.find('/');
  if (end == std::string_view::npos || end + 1 == key.size()) return std::nullopt;
  const auto instance = InstanceId::parse(key.substr(0, end));
  if (!instance) return std::nullopt;
  const std::size_t name_at = end + (key[end + 1] == before_dots ? 2 : 1);
  PeerId id{std::string(key.substr(name_at)), *instance};
  for (char& each : id.name) each = each == slash_in_name ? '/' : each;
  return id;
}

}  // namespace

Mark joined_mark(const Joined& joined) {
  std::string name = joined.id.name;
  for (char& each : name) each = each == '/' ? slash_in_name : each;
  if (name == "." || name == "..") name.insert(name.begin(), before_dots);
  return {fmt::format("{}/{}{}/{}/{}", TreeMarks::member_top, kind, joined.id.instance.to_string(), name,
                      joined.run),
          MarkKind::tree};
}

MemberMarks member_marks(const MarkSet& marks) {
  MemberMarks found;
  for (const auto& [key, run] : marks.tree_marks().members()) {
    if (auto id = parse(key)) {
      found.joined.emplace(*std::move(id), run);
    } else {
      found.is_incomplete = true;
    }
  }
  return found;
}

}  // namespace spoor::tracker
