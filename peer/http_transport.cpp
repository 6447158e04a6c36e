#include "peer/http_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <memory>
#include <utility>
#include <vector>

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;
using Socket = asio::generic::stream_protocol::socket;

constexpr std::size_t buffer_bytes_max = std::size_t{128} << 10U;  // the body is not kept in it

// Errors come back as values: a peer that hangs up is not exceptional.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

base::Error failed(std::string_view what, const error_code& code) {
  const bool timed_out = code == asio::error::timed_out;
  return {static_cast<std::error_code>(code),
          fmt::format("cannot {}: {}", what, timed_out ? "no answer in time" : code.message())};
}

http::request<http::string_body> to_message(const HttpRequest& request) {
  http::request<http::string_body> message{http::string_to_verb(request.method), request.target, 11};
  message.set(http::field::host, request.endpoint.is_unix() ? "localhost" : request.endpoint.host);
  message.set(http::field::user_agent, "spoor");
  message.set(http::field::connection, "close");
  if (!request.content_type.empty()) message.set(http::field::content_type, request.content_type);
  message.body() = request.body;
  message.prepare_payload();
  return message;
}

// A connection and the time it may take. Shared with the handler of its timer, which may run after the
// exchange has ended.
struct Connection {
  explicit Connection(const asio::any_io_executor& executor)
      : socket(executor), resolver(executor), deadline(executor) {}

  Socket socket;
  tcp::resolver resolver;
  asio::steady_timer deadline;
  bool timed_out = false;
};

void arm(const std::shared_ptr<Connection>& connection, std::chrono::milliseconds timeout) {
  connection->deadline.expires_after(timeout);
  connection->deadline.async_wait([connection](const error_code& error) {
    if (error) return;
    connection->timed_out = true;
    connection->resolver.cancel();
    error_code ignored;
    connection->socket.close(ignored);
  });
}

// The timer must not keep the loop running after the exchange.
struct Disarm {
  asio::steady_timer& deadline;

  explicit Disarm(asio::steady_timer& timer) : deadline(timer) {}
  Disarm(const Disarm&) = delete;
  Disarm& operator=(const Disarm&) = delete;
  ~Disarm() { deadline.cancel(); }
};

// Tries the addresses one after the other; gives the failure of the last.
asio::awaitable<error_code> connect(std::shared_ptr<Connection> connection,
                                    std::vector<Socket::endpoint_type> addresses) {
  error_code last = asio::error::host_not_found;
  for (const auto& address : addresses) {
    if (connection->timed_out) break;
    error_code ignored;
    connection->socket.close(ignored);
    const auto [error] = co_await connection->socket.async_connect(address, as_result);
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

asio::awaitable<base::Result<HttpResponse>> exchange_one(const HttpRequest& request,
                                                         HttpTransport::Options options) {
  const auto connection = std::make_shared<Connection>(co_await asio::this_coro::executor);
  const auto failure = [&](std::string_view what, const error_code& code) {
    return failed(what, connection->timed_out ? error_code(asio::error::timed_out) : code);
  };
  arm(connection, options.timeout);
  const Disarm at_the_end(connection->deadline);
  std::vector<Socket::endpoint_type> addresses;
  error_code not_numeric;
  const auto numeric = asio::ip::make_address(request.endpoint.host, not_numeric);
  if (request.endpoint.is_unix()) {
    auto address = unix_address(request.endpoint.unix_path);
    if (!address) co_return address.error();
    addresses = *std::move(address);
  } else if (!not_numeric) {  // names are resolved one after the other: it must not wait for them
    addresses.emplace_back(tcp::endpoint(numeric, request.endpoint.port));
  } else {
    const auto [error, found] = co_await connection->resolver.async_resolve(
        request.endpoint.host, std::to_string(request.endpoint.port), as_result);
    if (error) co_return failure("resolve the host", error);
    for (const auto& entry : found) addresses.emplace_back(entry.endpoint());
  }
  const error_code connect_error = co_await connect(connection, std::move(addresses));
  if (connect_error) co_return failure("connect", connect_error);

  const auto message = to_message(request);
  const auto [write_error, written] = co_await http::async_write(connection->socket, message, as_result);
  // A server may answer and close before it has read everything: its answer is still worth reading.
  beast::flat_buffer buffer(buffer_bytes_max);
  http::response_parser<http::string_body> parser;
  parser.body_limit(options.body_bytes_max);
  const auto [read_error, read] = co_await http::async_read(connection->socket, buffer, parser, as_result);
  if (read_error && write_error) co_return failure("send the request", write_error);
  if (read_error) co_return failure("read the answer", read_error);
  auto& answer = parser.get();
  HttpResponse response;
  response.status = answer.result_int();
  response.content_type = answer[http::field::content_type];
  response.body = std::move(answer.body());
  co_return response;
}

// Takes one request after the other from the common list, until none is left.
asio::awaitable<void> work(std::span<const HttpRequest> requests, std::size_t& next,
                           const HttpTransport::Options& options, const Transport::OnResponse& on_response) {
  while (next < requests.size()) {
    const std::size_t index = next++;
    const HttpRequest& request = requests[index];
    auto response = co_await exchange_one(request, options);
    on_response(index, std::move(response));
  }
}

}  // namespace

void HttpTransport::exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) {
  asio::io_context context(1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::min(requests.size(), options_.concurrent_max); ++i) {
    asio::co_spawn(context, work(requests, next, options_, on_response),
                   [](const std::exception_ptr& failure) {
                     if (failure) std::rethrow_exception(failure);
                   });
  }
  context.run();
}

}  // namespace spoor::peer
