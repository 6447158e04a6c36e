#include "cli/daemon_client.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace spoor::cli {
namespace {

constexpr std::uint64_t body_bytes_max = std::uint64_t{32} << 20U;

// The failure of a request to the daemon of this node, and what to do about it.
base::Error with_advice(const base::Error& error) {
  std::string advice;
  if (error.code == std::errc::connection_refused || error.code == std::errc::no_such_file_or_directory)
    advice = "; does spoord run? systemctl status spoord";
  if (error.code == std::errc::permission_denied)
    advice = "; run it as root, or as a user that may open the socket";
  return {error.code, error.message + advice};
}

}  // namespace

base::Result<DaemonClient> DaemonClient::create(const GlobalOptions& global,
                                                std::chrono::milliseconds timeout) {
  auto endpoint = global.own_endpoint();
  if (!endpoint) return endpoint.error();
  auto credentials = global.own_credentials(*endpoint);
  if (!credentials) return credentials.error();
  auto transport = peer::make_http_transport(
      {.credentials = *std::move(credentials), .timeout = timeout, .body_bytes_max = body_bytes_max});
  return DaemonClient(*std::move(endpoint), std::move(transport));
}

base::Result<nlohmann::ordered_json> DaemonClient::exchange(const std::string& method,
                                                            const std::string& target) {
  const auto response = peer::exchange(*transport_, {endpoint_, method, target, {}, {}});
  if (!response) return with_advice(response.error());
  if (!response->is_success()) {
    return base::Error(std::make_error_code(std::errc::io_error), peer::problem_detail(*response));
  }
  auto json = peer::json_object(*response);
  if (json.is_object()) return json;
  return base::Error(
      std::make_error_code(std::errc::bad_message),
      fmt::format("the response of {} to {} is not a JSON object", endpoint_.to_string(), target));
}

}  // namespace spoor::cli
