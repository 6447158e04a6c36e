// The body of POST /v1/peer/cycle: the scanner writes it, the daemon reads it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/cycles/tracker.h"

namespace spoor::peer {

// A longer body is refused.
inline constexpr std::size_t cycle_query_bytes_max = std::size_t{64} << 10U;

struct CycleQuery {
  std::string cluster;
  tracker::CycleRequest request;
  // The daemon that introduces itself by this request: the response means that it is recorded.
  std::optional<tracker::Joined> member = {};
};

// {"cluster":"c","current":13,"oldest":5,"instance":"...","start_level":0,"marks":true,
//  "members":false,"member":{"name":"n","instance":"...","run":3}}
std::string to_json(const CycleQuery& query);

// The defaults of absent members are 0, "", and true for "marks". Fails with std::errc::bad_message (not
// JSON) or std::errc::invalid_argument (a member of the wrong type or out of range; the message names it).
base::Result<CycleQuery> parse_cycle_query(std::string_view text);

}  // namespace spoor::peer
