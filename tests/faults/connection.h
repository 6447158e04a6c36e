// One HTTP connection that stays open from request to request, as a busy client's does.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstdint>
#include <optional>
#include <string>

namespace spoor::faults {

struct Answer {
  unsigned status = 0;
  std::string retry_after;  // the header; empty where there is none
  std::string body;
};

// To a TCP port of this machine. Not thread-safe.
class Connection {
 public:
  // A daemon that is gone already shows in the first send().
  explicit Connection(std::uint16_t port);

  // False also where nobody took the connection.
  bool is_open() const { return socket_.is_open(); }

  // Waits as long as it takes. Nothing where the daemon went away without a whole answer; from then on
  // there is none any more.
  std::optional<Answer> send(const std::string& method, const std::string& target,
                             const std::string& body = {});

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

}  // namespace spoor::faults
