// One exchange with a peer, POST /v1/peer/cycle: the query that the scanner writes and the daemon reads, and
// its response.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/cycle_frame.h"
#include "peer/http/transport.h"
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

HttpRequest cycle_request(const base::Endpoint& endpoint, const CycleQuery& query);

// Asks for the head of the frame alone, which is cheap for the daemon; `member` introduces itself.
HttpRequest probe_request(const base::Endpoint& endpoint, const std::string& cluster,
                          const std::optional<tracker::Joined>& member = {});

// The failure of the exchange, the daemon's own words where it refuses (std::errc::protocol_error), or that
// of decode_cycle_frame().
base::Result<CycleFrame> read_frame(const base::Result<HttpResponse>& response);

// The frame of a member of the cluster; one that presents a certificate of a node presents that of its own
// name.
base::Result<CycleFrame> read_member_frame(const base::Result<HttpResponse>& response,
                                           const std::string& cluster);

}  // namespace spoor::peer
