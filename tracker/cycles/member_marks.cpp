#include "tracker/cycles/member_marks.h"

#include <fmt/core.h>

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace spoor::tracker {
namespace {

constexpr std::string_view joined_kind = "joined";
constexpr std::string_view retired_kind = "retired";
// A name may contain a '/', and be longer than a component of a path may be with the instance before it. A
// space is in no name.
constexpr char slash_in_name = ' ';
// Before the names "." and "..", which no path may have as a component. A ':' is in no name.
constexpr char before_dots = ':';

Mark mark_of(std::string_view kind, const PeerId& id) {
  std::string name = id.name;
  for (char& each : name) each = each == '/' ? slash_in_name : each;
  if (name == "." || name == "..") name.insert(name.begin(), before_dots);
  return {fmt::format("{}/{}-{}/{}", TreeMarks::member_top, kind, id.instance.to_string(), name),
          MarkKind::tree};
}

std::optional<PeerId> parse(std::string_view path, std::string_view kind) {
  const std::string_view top = TreeMarks::member_top;
  if (path.size() < top.size() + kind.size() + 2 || path.substr(top.size() + 1, kind.size()) != kind)
    return {};
  path.remove_prefix(top.size() + kind.size() + 2);
  const auto end = path.find('/');
  if (end == std::string_view::npos || end + 1 == path.size()) return {};
  const auto instance = InstanceId::parse(path.substr(0, end));
  if (!instance) return {};
  const std::size_t name_at = end + (path[end + 1] == before_dots ? 2 : 1);
  PeerId id{std::string(path.substr(name_at)), *instance};
  for (char& each : id.name) each = each == slash_in_name ? '/' : each;
  return id;
}

}  // namespace

Mark joined_mark(const PeerId& id) { return mark_of(joined_kind, id); }
Mark retired_mark(const PeerId& id) { return mark_of(retired_kind, id); }

MemberMarks member_marks(const MarkSet& marks) {
  MemberMarks found;
  for (const std::string& path : marks.tree_marks().members()) {
    if (auto joined = parse(path, joined_kind)) {
      found.joined.insert(*std::move(joined));
    } else if (auto retired = parse(path, retired_kind)) {
      found.retired.insert(*std::move(retired));
    } else {
      found.is_incomplete = true;
    }
  }
  return found;
}

}  // namespace spoor::tracker
