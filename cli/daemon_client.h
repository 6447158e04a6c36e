#pragma once

#include <chrono>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "base/error.h"
#include "cli/options.h"
#include "peer/http_transport.h"

namespace spoor::cli {

// Sends a command's requests to its daemon: that of --url, or else the local one.
//
// Not thread-safe.
class DaemonClient {
 public:
  // Sends nothing yet. Fails where the options or the configuration name no daemon.
  static base::Result<DaemonClient> create(
      const GlobalOptions& global, std::chrono::milliseconds timeout = std::chrono::milliseconds(10'000));

  // The JSON object that the daemon responds with. Any other response is an error, with the detail of its
  // problem where it has one.
  base::Result<nlohmann::ordered_json> exchange(const std::string& method, const std::string& target);

 private:
  DaemonClient(peer::Endpoint endpoint, std::unique_ptr<peer::Transport> transport)
      : endpoint_(std::move(endpoint)), transport_(std::move(transport)) {}

  peer::Endpoint endpoint_;
  std::unique_ptr<peer::Transport> transport_;
};

}  // namespace spoor::cli
