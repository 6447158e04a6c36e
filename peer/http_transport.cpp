#include "peer/http_transport.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/basic_stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http.hpp>
#include <utility>

namespace spoor::peer {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;

// Errors come back as values: a peer that hangs up is not exceptional.
constexpr auto as_result = asio::as_tuple(asio::use_awaitable);

base::Error failed(const HttpRequest& request, std::string_view what, const error_code& code) {
  const std::error_code plain = code == beast::error::timeout ? std::make_error_code(std::errc::timed_out)
                                                              : static_cast<std::error_code>(code);
  return {plain, fmt::format("{}: cannot {}: {}", request.endpoint.to_string(), what,
                             code == beast::error::timeout ? "no answer in time" : code.message())};
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

template <class Stream>
asio::awaitable<base::Result<HttpResponse>> talk(Stream& stream, const HttpRequest& request,
                                                 std::uint64_t body_bytes_max) {
  const auto message = to_message(request);
  const auto [write_error, written] = co_await http::async_write(stream, message, as_result);
  // A server may answer and close before it has read everything: its answer is still worth reading.
  beast::flat_buffer buffer;
  http::response_parser<http::string_body> parser;
  parser.body_limit(body_bytes_max);
  const auto [read_error, read] = co_await http::async_read(stream, buffer, parser, as_result);
  if (read_error && write_error) co_return failed(request, "send the request", write_error);
  if (read_error) co_return failed(request, "read the answer", read_error);
  auto& answer = parser.get();
  HttpResponse response;
  response.status = answer.result_int();
  response.content_type = answer[http::field::content_type];
  response.body = std::move(answer.body());
  co_return response;
}

asio::awaitable<base::Result<HttpResponse>> exchange_unix(const HttpRequest& request,
                                                          const HttpTransport::Options& options) {
  beast::basic_stream<unix_stream> stream(co_await asio::this_coro::executor);
  stream.expires_after(options.timeout);
  if (request.endpoint.unix_path.size() >= sizeof(sockaddr_un::sun_path)) {
    co_return failed(request, "connect", asio::error::name_too_long);
  }
  const unix_stream::endpoint address(request.endpoint.unix_path);
  const auto [error] = co_await stream.async_connect(address, as_result);
  if (error) co_return failed(request, "connect", error);
  auto response = co_await talk(stream, request, options.body_bytes_max);
  co_return response;
}

asio::awaitable<base::Result<HttpResponse>> exchange_tcp(const HttpRequest& request,
                                                         const HttpTransport::Options& options) {
  const auto executor = co_await asio::this_coro::executor;
  beast::basic_stream<tcp> stream(executor);
  stream.expires_after(options.timeout);
  tcp::resolver resolver(executor);
  asio::steady_timer resolve_deadline(executor, options.timeout);
  resolve_deadline.async_wait([&resolver](const error_code& error) {
    if (!error) resolver.cancel();
  });
  const auto [resolve_error, addresses] =
      co_await resolver.async_resolve(request.endpoint.host, std::to_string(request.endpoint.port), as_result);
  resolve_deadline.cancel();
  if (resolve_error) co_return failed(request, "resolve the host", resolve_error);
  const auto [error, address] = co_await stream.async_connect(addresses, as_result);
  if (error) co_return failed(request, "connect", error);
  error_code ignored;
  stream.socket().set_option(tcp::no_delay(true), ignored);
  auto response = co_await talk(stream, request, options.body_bytes_max);
  co_return response;
}

// Takes one request after the other from the common list, until none is left.
asio::awaitable<void> work(std::span<const HttpRequest> requests, std::size_t& next,
                           const HttpTransport::Options& options, const Transport::OnResponse& on_response) {
  while (next < requests.size()) {
    const std::size_t index = next++;
    const HttpRequest& request = requests[index];
    // Not one conditional expression: GCC 12 destroys what is awaited in one twice.
    if (request.endpoint.is_unix()) {
      auto response = co_await exchange_unix(request, options);
      on_response(index, std::move(response));
    } else {
      auto response = co_await exchange_tcp(request, options);
      on_response(index, std::move(response));
    }
  }
}

}  // namespace

void HttpTransport::exchange(std::span<const HttpRequest> requests, const OnResponse& on_response) {
  asio::io_context context(1);
  std::size_t next = 0;
  for (std::size_t i = 0; i < std::min(requests.size(), options_.concurrent_max); ++i) {
    asio::co_spawn(context, work(requests, next, options_, on_response), [](const std::exception_ptr& failure) {
      if (failure) std::rethrow_exception(failure);
    });
  }
  context.run();
}

}  // namespace spoor::peer
