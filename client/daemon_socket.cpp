#include "client/daemon_socket.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cerrno>
#include <utility>

namespace spoor::client {
namespace {

namespace http = boost::beast::http;
using std::chrono::steady_clock;

constexpr std::uint32_t header_bytes_max = std::uint32_t{16} << 10U;
constexpr std::uint64_t body_bytes_max = std::uint64_t{64} << 10U;

base::Error timed_out() {
  return {std::make_error_code(std::errc::timed_out), "the daemon has not responded in time"};
}

// 0 for what is no socket. No two sockets have the same.
ino_t inode_of_socket(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) == 0 && S_ISSOCK(status.st_mode) ? status.st_ino : 0;
}

}  // namespace

DaemonSocket::DaemonSocket(std::filesystem::path socket, std::string token)
    : socket_(std::move(socket)), token_(std::move(token)) {}

DaemonSocket::~DaemonSocket() { drop_connection_of_others(); }

// A program may have closed the descriptor, as it becomes a daemon, and use its number for a file of its own.
void DaemonSocket::drop_connection_of_others() {
  if (!connection_ || inode_of_socket(connection_->get()) == inode_) return;
  connection_->release();
  connection_.reset();
}

void DaemonSocket::exchange(std::span<const peer::HttpRequest> requests, const OnResponse& on_response) {
  for (std::size_t i = 0; i < requests.size(); ++i) on_response(i, exchange_one(requests[i]));
}

base::Result<peer::HttpResponse> DaemonSocket::exchange_one(const peer::HttpRequest& request) {
  std::string header =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                  request.method, request.target, request.content_type, request.body.size());
  if (!token_.empty()) header += fmt::format("Authorization: Bearer {}\r\n", token_);
  header += "\r\n";
  drop_connection_of_others();
  const bool may_be_stale = connection_.has_value();
  auto response = try_once(header, request.body);
  // The daemon may have closed an idle connection, or started anew.
  const bool is_stale =
      !response && may_be_stale && !has_response_begun_ && response.error().code != std::errc::timed_out;
  return is_stale ? try_once(header, request.body) : response;
}

base::Result<peer::HttpResponse> DaemonSocket::try_once(const std::string& header, const std::string& body) {
  has_response_begun_ = false;
  auto connection = std::exchange(connection_, std::nullopt);  // kept only after a whole exchange
  // Bytes that no request has asked for are no response to this one; nor does one follow the end.
  char unasked = 0;
  if (connection && ::recv(connection->get(), &unasked, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) connection.reset();
  if (!connection) {
    auto connected = connect();
    if (!connected) return connected.error();
    connection.emplace(*std::move(connected));
  }
  std::array<iovec, 2> parts{iovec{const_cast<char*>(header.data()), header.size()},
                             iovec{const_cast<char*>(body.data()), body.size()}};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  http::response_parser<http::string_body> parser;
  parser.header_limit(header_bytes_max);
  parser.body_limit(body_bytes_max);
  parser.eager(true);
  std::string received;
  std::array<char, 16384> chunk{};
  std::size_t left = header.size() + body.size();
  bool is_cut = false;  // the daemon does not read the rest
  // Both ways at a time: the daemon responds before the end of a request that it refuses.
  while (!parser.is_done()) {
    if (auto done = wait_for(connection->get(), left > 0 ? POLLIN | POLLOUT : POLLIN); !done)
      return done.error();
    if (left > 0) {
      ssize_t sent = ::sendmsg(connection->get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
      const bool is_closed = sent < 0 && (errno == EPIPE || errno == ECONNRESET);
      if (sent < 0 && !is_closed && errno != EAGAIN && errno != EINTR)
        return base::system_error(errno, "cannot send to the daemon");
      if (is_closed) {  // there may be a response all the same
        is_cut = true;
        left = 0;
      }
      for (iovec& part : parts) {
        const auto taken =
            std::min<std::size_t>(part.iov_len, static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
        part.iov_base = static_cast<char*>(part.iov_base) + taken;
        part.iov_len -= taken;
        sent -= static_cast<ssize_t>(taken);
        left -= std::min(left, taken);
      }
    }
    const ssize_t got = ::recv(connection->get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return base::system_error(errno, "cannot read from the daemon");
    boost::system::error_code error;
    if (got == 0) {
      if (has_response_begun_) parser.put_eof(error);
      if (!error && parser.is_done()) break;
      return base::Error(std::make_error_code(std::errc::connection_aborted),
                         "the daemon closed the connection without a whole response");
    }
    has_response_begun_ = true;
    received.append(chunk.data(), static_cast<std::size_t>(got));
    const std::size_t used = parser.put(boost::asio::buffer(received), error);
    received.erase(0, used);
    const bool is_too_long = received.size() > header_bytes_max;  // a line that does not end
    if (is_too_long) error = http::error::header_limit;
    if (error && error != http::error::need_more)
      return base::Error(std::make_error_code(std::errc::protocol_error),
                         "the response is no HTTP response: " + error.message());
  }
  auto& parsed = parser.get();
  peer::HttpResponse response{.status = parsed.result_int(),
                              .content_type = std::string(parsed[http::field::content_type]),
                              .body = std::move(parsed.body())};
  if (response.status < 200 || (response.is_success() && (left > 0 || is_cut)))
    return base::Error(std::make_error_code(std::errc::protocol_error),
                       "the response is none to this request");
  if (parser.keep_alive() && left == 0 && received.empty()) {
    inode_ = inode_of_socket(connection->get());
    connection_.emplace(*std::move(connection));
  }
  return response;
}

base::Result<base::Descriptor> DaemonSocket::connect() const {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.native().copy(static_cast<char*>(address.sun_path), sizeof(address.sun_path) - 1);
  base::Descriptor connection = base::above_standard(
      base::Descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  // If all places in the queue of the socket are taken: EAGAIN.
  if (connection.get() >= 0 &&
      ::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
    return connection;
  return base::system_error(errno, fmt::format("cannot connect to {}", socket_.native()));
}

base::Result<> DaemonSocket::wait_for(int connection, short events) const {
  for (;;) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline_ - steady_clock::now());
    if (left.count() <= 0) return timed_out();
    pollfd poll{.fd = connection, .events = events, .revents = 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return base::system_error(errno, "cannot wait for the daemon");
  }
}

}  // namespace spoor::client
