#include "config/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <limits>
#include <span>

#include "base/clock.h"
#include "config/problem.h"

namespace spoor::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// If two texts are equally short, the first unit is printed: the largest, binary before decimal.
constexpr std::array duration_units = {
    Unit{"d", 86'400'000}, Unit{"h", 3'600'000}, Unit{"m", 60'000}, Unit{"s", 1'000}, Unit{"ms", 1},
};
constexpr std::array size_units = {
    Unit{"TiB", 1ULL << 40U},
    Unit{"GiB", 1ULL << 30U},
    Unit{"MiB", 1ULL << 20U},
    Unit{"KiB", 1ULL << 10U},
    Unit{"TB", 1'000'000'000'000},
    Unit{"GB", 1'000'000'000},
    Unit{"MB", 1'000'000},
    Unit{"KB", 1'000},
    Unit{"B", 1},
    Unit{"", 1},  // bytes; not printed
};

// `what`: the name of the quantity, and `accepted` its form, for messages.
base::Result<std::uint64_t> parse(std::string_view text, std::span<const Unit> units, std::uint64_t most,
                                  std::string_view what, std::string_view accepted) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const auto name = text.substr(static_cast<std::size_t>(end - text.data()));
  const auto unit = std::ranges::find(units, name, &Unit::name);
  const auto invalid = std::make_error_code(std::errc::invalid_argument);
  if (error == std::errc::invalid_argument || unit == units.end())
    return base::Error(invalid, fmt::format("{} is not a {}: expected {}", in_quotes(text), what, accepted));
  if (error == std::errc::result_out_of_range || number > most / unit->factor)
    return base::Error(invalid, fmt::format("{} is too large for a {}", in_quotes(text), what));
  return number * unit->factor;
}

std::string shortest(std::uint64_t value, std::span<const Unit> units, std::string_view zero) {
  if (value == 0) return std::string(zero);
  std::string best;
  for (const Unit& unit : units) {
    if (value % unit.factor != 0) continue;
    std::string text = fmt::format("{}{}", value / unit.factor, unit.name);
    if (best.empty() || text.size() < best.size()) best = std::move(text);
  }
  return best;
}

}  // namespace

base::Result<std::chrono::milliseconds> parse_duration(std::string_view text) {
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const auto parsed = parse(text, duration_units, most, "duration",
                            "a whole number and a unit (ms, s, m, h, d), such as \"10s\"");
  if (!parsed) return parsed.error();
  return std::chrono::milliseconds(static_cast<std::int64_t>(*parsed));
}

base::Result<base::WallTime> parse_since(std::string_view text, base::WallTime now) {
  constexpr std::chrono::minutes clock_tolerance{5};  // of a client on another machine
  constexpr std::string_view midnight = "T00:00:00Z";
  for (const std::string& written : {std::string(text), std::string(text).append(midnight)}) {
    const auto time = base::parse_iso_time(written);
    if (!time) continue;
    if (*time > now + clock_tolerance) {
      return base::Error(std::make_error_code(std::errc::invalid_argument),
                         fmt::format("{} is in the future: it is {}", in_quotes(text), base::iso_time(now)));
    }
    return *time;
  }
  const auto ago = parse_duration(text == "yesterday" ? "24h" : text);
  if (!ago) {
    return base::Error(ago.error().code,
                       fmt::format("{} is not a time: expected a duration such as \"24h\" or "
                                   "\"7d\", \"yesterday\", a day such as \"2026-11-21\" (UTC), or a "
                                   "time such as \"2026-11-21T04:05:06Z\"",
                                   in_quotes(text)));
  }
  const auto most = std::chrono::floor<std::chrono::milliseconds>(now.time_since_epoch());
  return base::WallTime(std::max(most - *ago, std::chrono::milliseconds(0)));
}

base::Result<std::uint64_t> parse_size(std::string_view text) {
  return parse(text, size_units, std::numeric_limits<std::uint64_t>::max(), "size",
               "a whole number and a unit (B, KiB, MiB, GiB, TiB, KB, MB, GB, TB), such as \"8MiB\"");
}

std::string format_duration(std::chrono::milliseconds duration) {
  return shortest(static_cast<std::uint64_t>(duration.count()), duration_units, "0s");
}

std::string format_size(std::uint64_t bytes) {
  return shortest(bytes, std::span(size_units).first(size_units.size() - 1), "0B");
}

}  // namespace spoor::config
