#include "cli/program/daemon_client.h"

#include <fmt/core.h>
#include <unistd.h>

#include <boost/url/encode.hpp>
#include <boost/url/rfc/unreserved_chars.hpp>
#include <nlohmann/json.hpp>
#include <utility>

#include "config/derived.h"

namespace spoor::cli {
namespace {

// The failure of a request to the daemon of this node, and what to do about it.
base::Error with_advice(const base::Error& error, const base::Endpoint& endpoint) {
  std::string advice;
  if (error.code == std::errc::connection_refused || error.code == std::errc::no_such_file_or_directory)
    advice = "; does spoord run? systemctl status spoord";
  if (error.code == std::errc::network_unreachable || error.code == std::errc::address_family_not_supported)
    advice =
        "; a scan by spoor-scan.service has no network: add a Unix socket to listen, or the drop-in of the "
        "unit";
  if (error.code == std::errc::permission_denied && endpoint.is_unix())
    advice = access_advice(endpoint.unix_path);
  return {error.code, error.message + advice};
}

bool is_on_loopback(const base::Endpoint& endpoint) {
  return endpoint.host == "localhost" || endpoint.host == "::1" || endpoint.host.starts_with("127.");
}

// How to get a further role at the Unix socket of this node's daemon; empty if there is none.
std::string socket_advice(const base::Endpoint& endpoint, const std::filesystem::path& socket) {
  if (socket.empty()) return "";
  if (endpoint.is_unix() || !is_permitted(socket, W_OK)) return access_advice(socket);
  return fmt::format("; or leave out --url: {} needs no token", socket.native());
}

}  // namespace

base::Result<DaemonClient> DaemonClient::create(const GlobalOptions& global,
                                                std::chrono::milliseconds timeout,
                                                std::uint64_t body_bytes_max) {
  auto endpoint = global.own_endpoint();
  if (!endpoint) return endpoint.error();
  auto credentials = global.own_credentials(*endpoint);
  if (!credentials) return credentials.error();
  std::filesystem::path socket = endpoint->unix_path;
  const auto config = global.load_config();
  if (is_on_loopback(*endpoint) && config) {
    if (const auto own = config::own_endpoint(*config)) socket = own->unix_path;
  }
  auto transport = peer::make_http_transport({.credentials = *std::move(credentials),
                                              .timeout = timeout,
                                              .body_bytes_max = body_bytes_max,
                                              .bodies_bytes_max = body_bytes_max});
  return DaemonClient(*std::move(endpoint), std::move(socket), std::move(transport));
}

base::Result<peer::HttpResponse> DaemonClient::send(const peer::HttpRequest& request) {
  auto response = peer::exchange(*transport_, request);
  if (!response) return with_advice(response.error(), endpoint_);
  if (response->status == 401 || response->status == 403) {
    return base::Error(std::make_error_code(std::errc::io_error),
                       peer::problem_detail(*response) + socket_advice(endpoint_, socket_));
  }
  return response;
}

base::Result<nlohmann::ordered_json> DaemonClient::exchange(const std::string& method,
                                                            const std::string& target) {
  const auto response = send({endpoint_, method, target, {}, {}});
  if (!response) return response.error();
  if (!response->is_success())
    return base::Error(std::make_error_code(std::errc::io_error), peer::problem_detail(*response));
  auto json = peer::json_object(*response);
  if (json.is_object()) return json;
  return base::Error(
      std::make_error_code(std::errc::bad_message),
      fmt::format("the response of {} to {} is not a JSON object", endpoint_.to_string(), target));
}

std::string url_encoded(std::string_view text) {
  return boost::urls::encode(text, boost::urls::unreserved_chars);
}

}  // namespace spoor::cli
