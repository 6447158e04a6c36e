#include "daemon/http/http_stream.h"

#include <poll.h>

#include <algorithm>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

}  // namespace

HttpStream::HttpStream(Socket socket, std::shared_ptr<asio::ssl::context> context,
                       std::size_t buffer_bytes_max)
    : buffer(buffer_bytes_max), socket_(std::move(socket)), context_(std::move(context)) {
  if (context_) tls_.emplace(socket_, *context_);
}

asio::awaitable<std::tuple<error_code>> HttpStream::shake_hands() {
  return tls_->async_handshake(asio::ssl::stream_base::server, as_result);
}

asio::awaitable<std::tuple<error_code>> HttpStream::close_tls() { return tls_->async_shutdown(as_result); }

asio::awaitable<HttpStream::Done> HttpStream::read_some(asio::mutable_buffer target) {
  if (tls_) return tls_->async_read_some(target, as_result);
  return socket_.async_read_some(target, as_result);
}

asio::awaitable<HttpStream::Done> HttpStream::write_some(asio::const_buffer source) {
  if (tls_) return tls_->async_write_some(source, as_result);
  return socket_.async_write_some(source, as_result);
}

asio::awaitable<HttpStream::Done> HttpStream::read_raw(asio::mutable_buffer target) {
  return socket_.async_read_some(target, as_result);
}

asio::awaitable<error_code> HttpStream::fill(std::size_t bytes) {
  const std::size_t room = std::min(buffer.max_size() - buffer.size(), bytes);
  if (room == 0) co_return boost::beast::http::error::buffer_overflow;
  const auto [error, size] = co_await read_some(buffer.prepare(room));
  buffer.commit(size);
  co_return error;
}

bool HttpStream::has_input() {
  error_code ignored;
  const bool is_decoded = tls_ && SSL_pending(native_tls()) > 0;
  return buffer.size() > 0 || is_decoded || socket_.available(ignored) > 0;
}

bool HttpStream::can_write() {
  pollfd socket{socket_.native_handle(), POLLOUT, 0};
  return ::poll(&socket, 1, 0) == 1;  // also true if a write would fail at once
}

bool HttpStream::end_sending() {
  error_code error;
  socket_.shutdown(Socket::shutdown_send, error);
  return !error;
}

void HttpStream::cancel() {
  error_code ignored;
  socket_.cancel(ignored);
}

}  // namespace spoor::daemon
