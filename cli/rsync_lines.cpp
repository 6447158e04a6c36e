#include "cli/rsync_lines.h"

#include <algorithm>

namespace spoor::cli {
namespace {

// "YXcstpoguax", or "*deleting  ".
constexpr std::size_t change_bytes = 11;

bool is_octal(char byte) { return byte >= '0' && byte <= '7'; }

// rsync escapes a backslash only if it would otherwise start an escape.
std::string unescaped(std::string_view name) {
  std::string bytes;
  while (!name.empty()) {
    const bool is_escape = name.size() >= 5 && name.starts_with("\\#") && name[2] <= '3' &&
                           std::ranges::all_of(name.substr(2, 3), is_octal);
    if (is_escape) {
      const int value = (name[2] - '0') * 64 + (name[3] - '0') * 8 + (name[4] - '0');
      bytes += static_cast<char>(value);
    } else {
      bytes += name[0];
    }
    name.remove_prefix(is_escape ? 5 : 1);
  }
  return bytes;
}

}  // namespace

std::optional<tracker::Mark> read_rsync_line(std::string_view line) {
  if (line.size() <= change_bytes + 1 || line[change_bytes] != ' ') return std::nullopt;
  const std::string_view change = line.substr(0, change_bytes);
  const bool is_message = change.starts_with("*deleting");
  const bool is_change = std::string_view("<>ch.").find(change[0]) != std::string_view::npos &&
                         std::string_view("fdLDS").find(change[1]) != std::string_view::npos;
  if (!is_message && !is_change) return std::nullopt;
  std::string name = unescaped(line.substr(change_bytes + 1));
  const bool is_directory = name.ends_with('/');
  return tracker::Mark{std::move(name), is_directory ? tracker::MarkKind::dir : tracker::MarkKind::file};
}

}  // namespace spoor::cli
