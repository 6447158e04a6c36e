#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"

namespace spoor::daemon {

// What came in to be marked since the start, as GET /v1/status and /metrics report it.
struct MarkCounters {
  std::uint64_t accepted = 0;  // marks acknowledged, known ones included
  std::uint64_t ignored = 0;   // paths that the namespace rules exclude, and events that mark nothing
  std::uint64_t added = 0;     // of those accepted, marks that set something new
  std::uint64_t rejected = 0;  // requests refused

  std::uint64_t unknown_events = 0;  // of those ignored, S3 events of an unknown name
  std::uint64_t invalid_keys = 0;    // S3 events whose key is not a path: marked as a tree

  // Of those accepted, by Access::identity_of(); beyond identities_max all further ones are "other".
  static constexpr std::size_t identities_max = 256;
  struct OfIdentity {
    std::uint64_t accepted = 0;
    base::WallTime last_at{};
  };
  std::map<std::string, OfIdentity> identities = {};
};

}  // namespace spoor::daemon
