#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/program/options.h"
#include "peer/http/http_transport.h"

namespace spoor::cli {

// For the totals of the cluster: longer than a daemon waits for the members.
inline constexpr std::chrono::seconds cluster_timeout{30};

// Sends a command's requests to its daemon: that of --url, or else the local one.
//
// Not thread-safe.
class DaemonClient {
 public:
  // Does not connect yet. Fails if neither the options nor the configuration name a daemon.
  static base::Result<DaemonClient> create(const GlobalOptions& global,
                                           std::chrono::milliseconds timeout = std::chrono::seconds(10),
                                           std::uint64_t body_bytes_max = std::uint64_t{32} << 20U);

  // The response, whatever its status; an error says what to do about it.
  base::Result<peer::HttpResponse> send(const peer::HttpRequest& request);

  // Returns the JSON object of the daemon's response. Any other response is an error, with the detail of its
  // problem document if it has one.
  base::Result<nlohmann::ordered_json> exchange(const std::string& method, const std::string& target);

  const base::Endpoint& endpoint() const { return endpoint_; }
  peer::Transport& transport() { return *transport_; }

 private:
  DaemonClient(base::Endpoint endpoint, std::filesystem::path socket,
               std::unique_ptr<peer::Transport> transport)
      : endpoint_(std::move(endpoint)), socket_(std::move(socket)), transport_(std::move(transport)) {}

  base::Endpoint endpoint_;
  std::filesystem::path socket_;  // of the daemon of this node, if it is known
  std::unique_ptr<peer::Transport> transport_;
};

// `text` as the value of a parameter of a request.
std::string url_encoded(std::string_view text);

}  // namespace spoor::cli
