// One exchange with a peer: POST /v1/peer/cycle.
#pragma once

#include <optional>
#include <string>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/cycle_frame.h"
#include "peer/http/transport.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/cycles/tracker.h"

namespace spoor::peer {

HttpRequest cycle_request(const base::Endpoint& endpoint, const std::string& cluster,
                          const tracker::CycleRequest& request);

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

// The daemon responded, and does not accept the credentials.
bool refuses_credentials(const base::Result<HttpResponse>& response);

}  // namespace spoor::peer
