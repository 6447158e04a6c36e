// Sockets that the service manager opened for this process ("socket activation", sd_listen_fds(3)).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

struct PassedSocket {
  int descriptor = -1;        // not closed by this struct; HttpServer::adopt() takes ownership
  std::string name;           // of the socket unit, or as set by FileDescriptorName=
  config::Listener listener;  // its address
};

// Returns all of them at the first call; later calls return none. Fails if one is not a listening TCP socket
// or a listening Unix socket with a path.
base::Result<std::vector<PassedSocket>> take_passed_sockets();

// Whether the socket has the address or path of this listener of the configuration.
bool is_for(const PassedSocket& socket, const config::Listener& listener);

// Returns `config` with an added listener for each socket that is not in `listen`. Fails if such a listener
// would be invalid, or if two sockets have the same address.
base::Result<config::Config> with_listeners_for(const std::vector<PassedSocket>& sockets,
                                                config::Config config);

}  // namespace spoor::daemon
