// Durations ("30d", "12h", "5m", "10s", "250ms") and sizes ("8MiB", "10GB", "1048576") as text: a whole
// number and one unit.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::config {

// Fails with std::errc::invalid_argument if `text` is not a duration or exceeds 64 bits of milliseconds.
base::Result<std::chrono::milliseconds> parse_duration(std::string_view text);

// A time in the past: "24h" is that long before `now`; or an ISO 8601 time in UTC, "2026-11-21T04:05:06Z".
// Fails with std::errc::invalid_argument for other text.
base::Result<base::WallTime> parse_since(std::string_view text, base::WallTime now);

// Fails with std::errc::invalid_argument if `text` is not a size or exceeds 64 bits of bytes.
base::Result<std::uint64_t> parse_size(std::string_view text);

// The shortest text that parses to exactly `duration`, which is not negative: "5m", not "300s".
std::string format_duration(std::chrono::milliseconds duration);

// The shortest text with a unit that parses to exactly `bytes`: "8MiB", not "8192KiB".
std::string format_size(std::uint64_t bytes);

}  // namespace spoor::config
