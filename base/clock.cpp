#include "base/clock.h"

#include <fmt/chrono.h>

#include <ctime>

namespace spoor::base {

std::string iso_time(WallTime time) {
  // Of a time_point, fmt 9 prints the local time.
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(static_cast<std::time_t>(seconds)));
}

std::optional<WallTime> parse_iso_time(const std::string& text) {
  std::tm parts{};
  const char* const end = ::strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const auto time = std::chrono::sys_seconds(std::chrono::seconds(::timegm(&parts)));
  constexpr auto bounds = std::chrono::floor<std::chrono::seconds>(WallTime::max());
  if (time > bounds || time < -bounds.time_since_epoch() + std::chrono::sys_seconds()) return std::nullopt;
  if (iso_time(time) != text) return std::nullopt;  // strptime() accepts more forms
  return time;
}

}  // namespace spoor::base
