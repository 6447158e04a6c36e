#include "base/iso_time.h"

#include <fmt/chrono.h>

namespace spoor::base {

std::string iso_time(WallTime time) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", std::chrono::floor<std::chrono::seconds>(time));
}

}  // namespace spoor::base
