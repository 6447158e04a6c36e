#include "config/problem.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/printable.h"

namespace spoor::config {
namespace {

constexpr std::size_t shown_bytes_max = 80;

}  // namespace

void add(Problems& problems, std::string key, std::string_view what) {
  std::string text = fmt::format("{}: {}", key, what);
  problems.push_back({std::move(key), std::move(text)});
}

bool related(std::string_view one, std::string_view other) {
  if (one.size() > other.size()) std::swap(one, other);
  if (!other.starts_with(one)) return false;
  return one.size() == other.size() || other[one.size()] == '.' || other[one.size()] == '[';
}

std::string escaped(std::string_view text) {
  const std::string harmless = base::without_password(text);
  const nlohmann::json start = harmless.substr(0, shown_bytes_max);
  std::string shown = start.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  shown = shown.substr(1, shown.size() - 2);  // Without the quotes.
  // DEL is the only control character that JSON does not escape.
  std::ranges::replace(shown, '\x7f', '?');
  return harmless.size() > shown_bytes_max ? shown + "..." : shown;
}

std::string in_quotes(std::string_view text) { return '"' + escaped(text) + '"'; }

}  // namespace spoor::config
