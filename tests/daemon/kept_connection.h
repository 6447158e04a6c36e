// One HTTP connection that stays open from request to request, as a busy client's does.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "peer/http/http_transport.h"
#include "tests/support/loopback.h"

namespace spoor::daemon {

// To a TCP port of own_loopback(). Connects again where the other side has closed it. Not thread-safe.
class KeptConnection {
 public:
  explicit KeptConnection(std::uint16_t port) : endpoint_{support::own_loopback(), port, {}} {}

  base::Result<peer::HttpResponse> send(const std::string& method, const std::string& target,
                                        const std::string& body = {}) {
    return peer::exchange(transport_, {endpoint_, method, target, "application/json", body});
  }

 private:
  const base::Endpoint endpoint_;
  peer::HttpTransport transport_{{.timeout = std::chrono::minutes(2)}};  // a busy machine takes its time
};

}  // namespace spoor::daemon
