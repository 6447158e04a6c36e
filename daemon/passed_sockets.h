// Sockets that the service manager listens on for this process ("socket activation", sd_listen_fds(3)).
#pragma once

#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"

namespace spoor::daemon {

struct PassedSocket {
  int descriptor = -1;        // whoever serves it owns it
  std::string name;           // that of the socket unit, unless FileDescriptorName= gives another
  config::Listener listener;  // where it listens
};

// Each of them, at the first call; later ones find none. Fails where one is not what a daemon can serve:
// TCP or a Unix socket with a path, that listens.
base::Result<std::vector<PassedSocket>> take_passed_sockets();

// Whether this socket is where this listener of the configuration would be bound.
bool is_for(const PassedSocket& socket, const config::Listener& listener);

// `config`, with a listener for each socket that `listen` does not have. Fails, and says what to do, where
// `listen` could not have it, or where two sockets are for the same listener.
base::Result<config::Config> with_listeners_for(const std::vector<PassedSocket>& sockets,
                                                config::Config config);

}  // namespace spoor::daemon
