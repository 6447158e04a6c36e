// How a node that retires hands its marks on (docs/cluster.md, "Leaving"): POST /v1/peer/unread and
// POST /v1/peer/adopt.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/cycle_frame.h"
#include "peer/http/transport.h"
#include "tracker/cycles/member_marks.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/cycles/tracker.h"

namespace spoor::peer {

// The first cycle of a tracker that the next scan of a node needs: by its book; 0: all; nullopt: none, since
// it walks everything.
using UnreadFrom = std::optional<tracker::CycleId>;
UnreadFrom unread_from(const tracker::PeerBook& book, const tracker::PeerId& id);

HttpRequest unread_request(const base::Endpoint& endpoint, const std::string& cluster,
                           const tracker::PeerId& id);
std::string unread_json(const UnreadFrom& from);
base::Result<UnreadFrom> read_unread(const base::Result<HttpResponse>& response);

// The marks from this cycle on, and all records of members.
tracker::MarkSet marks_to_hand_over(tracker::Tracker& tracker, tracker::CycleId from);
// In their place, where a member does not adopt them: a mark on everything, and the records.
tracker::MarkSet everything(const tracker::MarkSet& marks);

HttpRequest adopt_request(const base::Endpoint& endpoint, const CycleFrame& frame,
                          const tracker::Retired& retired);

struct AdoptQuery {
  tracker::Retired retired;
  CycleFrame frame;
};

// Fails with a message for the sender.
base::Result<AdoptQuery> parse_adopt_query(std::optional<std::string_view> run,
                                           std::optional<std::string_view> from, std::string_view body);

}  // namespace spoor::peer
