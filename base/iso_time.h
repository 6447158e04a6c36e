#pragma once

#include <string>

#include "base/clock.h"

namespace spoor::base {

// "2026-11-21T04:05:06Z"
std::string iso_time(WallTime time);

}  // namespace spoor::base
