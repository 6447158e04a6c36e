// The bytes of one connection, with or without TLS.
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
#include <string>
#include <tuple>

namespace spoor::daemon {

// Errors come back as values: a client that hangs up is not exceptional.
class HttpStream {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Done = std::tuple<boost::system::error_code, std::size_t>;

  // `context`: none for a plain connection. The buffer takes no more than so many bytes.
  HttpStream(Socket socket, std::shared_ptr<boost::asio::ssl::context> context, std::size_t buffer_bytes_max);

  bool is_plain() const { return !tls_; }
  SSL* native_tls() { return tls_->native_handle(); }

  boost::asio::awaitable<std::tuple<boost::system::error_code>> shake_hands();
  boost::asio::awaitable<std::tuple<boost::system::error_code>> close_tls();

  boost::asio::awaitable<Done> read_some(boost::asio::mutable_buffer target);
  boost::asio::awaitable<Done> write_some(boost::asio::const_buffer source);

  // Past TLS: for what nobody will look at.
  boost::asio::awaitable<Done> read_raw(boost::asio::mutable_buffer target);

  // Reads on at the buffer's end. The error `buffer_overflow` of Beast where there is too much in it already.
  boost::asio::awaitable<boost::system::error_code> fill(std::size_t bytes);

  // Its IP address; empty for a Unix socket.
  std::string other_end() const;

  bool has_input();

  // Whether some KiB can be written without waiting for the other side to read.
  bool can_write();

  // False where the other side has gone.
  bool end_sending();

  void cancel();

  boost::beast::flat_buffer buffer;  // what came of it that nobody has taken yet

 private:
  Socket socket_;
  std::shared_ptr<boost::asio::ssl::context> context_;
  std::optional<boost::asio::ssl::stream<Socket&>> tls_;
};

}  // namespace spoor::daemon
