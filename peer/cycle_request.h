// The body of POST /v1/peer/cycle, as the scanner writes it and the daemon reads it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tracker/tracker.h"

namespace spoor::peer {

// A longer body is no query.
inline constexpr std::size_t cycle_query_bytes_max = std::size_t{64} << 10U;

struct CycleQuery {
  std::string cluster;
  tracker::CycleRequest request;
};

// {"cluster":"c","current":13,"oldest":5,"instance":"...","start_level":0,"marks":true}
std::string to_json(const CycleQuery& query);

// Members that are left out are 0, "" and true. `start_level` is at most LevelSchedule::level_max. Fails with
// std::errc::invalid_argument (not JSON, or a member of the wrong type or beyond what can be), saying which.
base::Result<CycleQuery> parse_cycle_query(std::string_view text);

}  // namespace spoor::peer
