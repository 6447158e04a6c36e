#include "config/problem.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "base/printable.h"

namespace spoor::config {
namespace {

constexpr std::size_t shown_bytes_max = 80;

// Of longer keys only the beginning is compared, which bounds the time.
constexpr std::size_t compared_max = 64;

// The number of insertions, deletions, substitutions and transpositions of adjacent letters.
std::size_t edit_distance(std::string_view from, std::string_view to) {
  from = from.substr(0, compared_max);
  to = to.substr(0, compared_max);
  // The costs for the prefix of `from` that ends here, one letter before, and two letters before.
  std::array<std::size_t, compared_max + 1> here{};
  std::array<std::size_t, compared_max + 1> before{};
  std::array<std::size_t, compared_max + 1> two_before{};
  std::iota(here.begin(), here.end(), std::size_t{0});
  for (std::size_t i = 1; i <= from.size(); ++i) {
    two_before = before;
    before = here;
    here[0] = i;
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t change = from[i - 1] == to[j - 1] ? 0 : 1;
      here[j] = std::min({before[j] + 1, here[j - 1] + 1, before[j - 1] + change});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) here[j] = std::min(here[j], two_before[j - 2] + 1);
    }
  }
  return here[to.size()];
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

}  // namespace

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

std::string_view nearest_key(std::string_view key, std::span<const std::string_view> known) {
  std::string_view best;
  std::size_t best_score = std::numeric_limits<std::size_t>::max();
  for (const std::string_view candidate : known) {
    std::size_t score = 2 * edit_distance(key, candidate);
    // The name alone counts only if it is nearly equal; otherwise the whole key decides.
    const std::size_t moved = edit_distance(last_part(key), last_part(candidate));
    if (moved <= 1) score = std::min(score, 2 * moved + 1);
    if (score < best_score) {
      best = candidate;
      best_score = score;
    }
  }
  return best;
}

Problem unknown_key(std::string_view key, std::span<const std::string_view> known) {
  return {std::string(key),
          fmt::format("unknown key '{}': did you mean '{}'?", escaped(key), nearest_key(key, known))};
}

}  // namespace spoor::config
