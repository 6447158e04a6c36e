// The listeners of `listen`: their sockets, passed by the service manager or opened here, and their TLS.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "config/config.h"
#include "daemon/http/http_server.h"
#include "daemon/http/tls.h"

namespace spoor::daemon {

// The TLS of a listener. Fails if one of its files is unusable.
base::Result<std::shared_ptr<TlsServer>> load_tls(const config::Tls& files);

// The group of a Unix socket. Fails if this machine does not know it.
base::Result<gid_t> socket_group(const config::Listener& listener);

// Takes over the sockets that were passed, and binds those of the other listeners. Returns the URLs. Fails if
// one can't be opened.
base::Result<std::vector<std::string>> open_listeners(HttpServer& server, const config::Config& config,
                                                      base::WallTime now);

}  // namespace spoor::daemon
