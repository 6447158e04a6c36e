// POST /v1/gather: what a scan asks the daemon of its node for, and the response (docs/http-api.md). The two
// are of one version: they are installed together.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/gather/gather.h"
#include "peer/http/transport.h"
#include "tracker/cycles/ids.h"
#include "tracker/cycles/peer_book.h"
#include "tracker/storage/snapshot.h"

namespace spoor::peer {

struct GatherQuery {
  static constexpr std::chrono::milliseconds timeout_max = std::chrono::minutes(10);

  // Of the scan: those of another daemon are refused.
  tracker::NodeIdentity node;
  tracker::InstanceId instance = {};  // of the daemon that uses the same data directory
  // Of the settings that say where members are. If the daemon has others, members may be missing.
  std::uint64_t members_digest = 0;
  std::chrono::milliseconds timeout{10'000};  // of one peer; at most timeout_max
  // The part that a scan decides: all from `rules_digest` to `read_only`. The daemon adds the rest.
  GatherOptions options = {};
  tracker::PeerBook book = {};
};

HttpRequest gather_request(const base::Endpoint& daemon, const GatherQuery& query);

// Fails with std::errc::bad_message, also for another version. The memory is proportional to `bytes`.
base::Result<GatherQuery> decode_gather_query(std::string_view bytes);

inline constexpr std::string_view gathered_content_type = "application/vnd.spoor.gathered";

std::string encode_gathered(const Gathered& gathered);

// The result for a scan; or the failure of the exchange, or the daemon's own words where it refuses
// (std::errc::protocol_error).
base::Result<Gathered> read_gathered(const base::Result<HttpResponse>& response);

}  // namespace spoor::peer
