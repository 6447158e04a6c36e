#pragma once

#include <optional>
#include <string>

#include "base/clock.h"

namespace spoor::base {

// "2026-11-21T04:05:06Z"
std::string iso_time(WallTime time);

// Parses such a text; nullopt for any other text.
std::optional<WallTime> parse_iso_time(const std::string& text);

}  // namespace spoor::base
