// The byte stream of one connection, with or without TLS.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <tuple>

namespace spoor::daemon {

// Errors are returned as values, as a disconnected client is not exceptional. Used on one thread.
class HttpStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::tuple<boost::system::error_code, std::size_t>;

  // `context`: none for a plain connection. `buffer_bytes_max` bounds `buffer`.
  HttpStream(Socket socket, std::shared_ptr<boost::asio::ssl::context> context, std::size_t buffer_bytes_max);

  bool is_plain() const { return !tls_; }
  SSL* native_tls() { return tls_->native_handle(); }

  boost::asio::awaitable<std::tuple<boost::system::error_code>> shake_hands();
  boost::asio::awaitable<std::tuple<boost::system::error_code>> close_tls();

  boost::asio::awaitable<Done> read_some(boost::asio::mutable_buffer target);
  boost::asio::awaitable<Done> write_some(boost::asio::const_buffer source);

  // Reads without TLS, for bytes that are discarded.
  boost::asio::awaitable<Done> read_raw(boost::asio::mutable_buffer target);

  // Appends up to `bytes` bytes to `buffer`. Fails with Beast's `buffer_overflow` if the buffer is full.
  boost::asio::awaitable<boost::system::error_code> fill(std::size_t bytes);

  // Whether bytes can be read without waiting.
  bool has_input();

  // Whether some KiB can be written without waiting for the client to read.
  bool can_write();

  // Returns false if the client has disconnected.
  bool end_sending();

  void cancel();

  boost::beast::flat_buffer buffer;  // bytes received and not consumed yet

 private:
  Socket socket_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace spoor::daemon
