#include "peer/http/http_exchange.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/local/stream_protocol.hpp>
#include <string>
#include <vector>

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;
using Socket = Exchange::Socket;

base::Error failed(std::string_view what, const error_code& code) {
  const bool timed_out = code == asio::error::timed_out;
  return {static_cast<std::error_code>(code),
          fmt::format("cannot {}: {}", what, timed_out ? "no answer in time" : code.message())};
}

// Tries the addresses one after the other; returns the error of the last attempt.
asio::awaitable<error_code> connect(std::shared_ptr<Exchange> exchange,
                                    std::vector<Socket::endpoint_type> addresses) {
  error_code last = asio::error::host_not_found;
  for (const auto& address : addresses) {
    if (exchange->timed_out) break;
    error_code ignored;
    exchange->socket.close(ignored);
    const auto [error] = co_await exchange->socket.async_connect(address, as_result);
    last = error;
    if (!error) break;
  }
  co_return last;
}

base::Result<std::vector<Socket::endpoint_type>> unix_address(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return failed("connect", asio::error::name_too_long);
  }
  return std::vector<Socket::endpoint_type>{unix_stream::endpoint(path)};
}

}  // namespace

void Exchange::expire() {
  timed_out = true;
  resolver.cancel();
  pause.cancel();
  error_code ignored;
  (tls ? tls->next_layer() : socket).close(ignored);
}

void arm(const std::shared_ptr<Exchange>& exchange, std::chrono::milliseconds timeout) {
  exchange->deadline.expires_after(timeout);
  exchange->deadline.async_wait([exchange](const error_code& error) {
    if (!error) exchange->expire();
  });
}

asio::awaitable<base::Result<>> open(std::shared_ptr<Exchange> exchange, const base::Endpoint& endpoint) {
  std::vector<Socket::endpoint_type> addresses;
  error_code not_numeric;
  const auto numeric = asio::ip::make_address(endpoint.host, not_numeric);
  if (endpoint.is_unix()) {
    auto address = unix_address(endpoint.unix_path);
    if (!address) co_return address.error();
    addresses = *std::move(address);
  } else if (!not_numeric) {  // name lookups run one after the other: an address must not wait for them
    addresses.emplace_back(tcp::endpoint(numeric, endpoint.port));
  } else {
    const auto [error, found] =
        co_await exchange->resolver.async_resolve(endpoint.host, std::to_string(endpoint.port), as_result);
    if (error) co_return failure(*exchange, "resolve the host", error);
    for (const auto& entry : found) addresses.emplace_back(entry.endpoint());
  }
  const error_code error = co_await connect(exchange, std::move(addresses));
  if (error) co_return failure(*exchange, "connect", error);
  co_return base::Result<>();
}

base::Error failure(const Exchange& exchange, std::string_view what, const error_code& code) {
  return failed(what, exchange.timed_out ? error_code(asio::error::timed_out) : code);
}

std::chrono::milliseconds pause_after(unsigned attempts, std::chrono::milliseconds first,
                                      std::chrono::milliseconds most, std::minstd_rand& random) {
  const auto nominal = std::min(first * (1U << std::min(attempts - 1, 16U)), most);
  std::uniform_real_distribution<double> jitter(0.5, 1.5);
  return std::chrono::duration_cast<std::chrono::milliseconds>(nominal * jitter(random));
}

}  // namespace spoor::peer
