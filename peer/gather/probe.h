// Checks whether a daemon runs at an endpoint, and reads its node name.
#pragma once

#include <cstdint>
#include <string>

#include "base/endpoint.h"
#include "base/error.h"
#include "peer/http/transport.h"

namespace spoor::peer {

// Cheap for the daemon: requests no marks.
HttpRequest probe_request(const base::Endpoint& endpoint, const std::string& cluster);

struct ProbeResult {
  std::string node;
  std::uint64_t run = 0;  // see CycleFrame
};

base::Result<ProbeResult> read_probe(const base::Result<HttpResponse>& response);

// Whether the daemon of this node runs at the endpoint: it responds under its name, or refuses the
// credentials.
bool is_running(Transport& transport, const base::Endpoint& endpoint, const std::string& cluster,
                const std::string& node);

}  // namespace spoor::peer
