// Whether a daemon is there, and who it is.
#pragma once

#include <string>

#include "base/error.h"
#include "peer/endpoint.h"
#include "peer/transport.h"

namespace spoor::peer {

// Costs the daemon next to nothing: no marks are asked for.
HttpRequest probe_request(const Endpoint& endpoint, const std::string& cluster);

// The name of the node that answered.
base::Result<std::string> read_probe(const base::Result<HttpResponse>& response);

// Whether the daemon of this node runs at the endpoint: it responds under its name, or refuses the
// credentials.
bool is_running(Transport& transport, const Endpoint& endpoint, const std::string& cluster,
                const std::string& node);

}  // namespace spoor::peer
