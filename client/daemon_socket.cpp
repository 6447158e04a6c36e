#include "client/daemon_socket.h"

#include <fmt/core.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
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
  std::string text =
      fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {}\r\nContent-Length: {}\r\n",
                  request.method, request.target, request.content_type, request.body.size());
  if (!token_.empty()) text += fmt::format("Authorization: Bearer {}\r\n", token_);
  text += "\r\n" + request.body;
  drop_connection_of_others();
  const bool may_be_stale = connection_.has_value();
  bool has_response_begun = false;
  auto response = try_once(text, has_response_begun);
  // The daemon may have closed an idle connection, or started anew.
  const bool is_stale =
      !response && may_be_stale && !has_response_begun && response.error().code != std::errc::timed_out;
  return is_stale ? try_once(text, has_response_begun) : response;
}

base::Result<peer::HttpResponse> DaemonSocket::try_once(std::string_view request, bool& has_response_begun) {
  auto connection = std::exchange(connection_, std::nullopt);  // kept only after a whole exchange
  // Bytes that no request has asked for are no response to this one; nor does one follow the end.
  char unasked = 0;
  if (connection && ::recv(connection->get(), &unasked, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) connection.reset();
  if (!connection) {
    auto connected = connect();
    if (!connected) return connected.error();
    connection.emplace(*std::move(connected));
  }
  http::response_parser<http::string_body> parser;
  parser.header_limit(header_bytes_max);
  parser.body_limit(body_bytes_max);
  parser.eager(true);
  std::string received;
  std::array<char, 16384> chunk{};
  bool is_cut = false;  // the daemon does not read the rest
  // Both ways at a time: the daemon responds before the end of a request that it refuses.
  while (!parser.is_done()) {
    const bool sends = !request.empty() && !is_cut;
    if (auto done = wait_for(connection->get(), sends ? POLLIN | POLLOUT : POLLIN); !done)
      return done.error();
    if (sends) {
      const ssize_t sent =
          ::send(connection->get(), request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      is_cut = sent < 0 && (errno == EPIPE || errno == ECONNRESET);  // there may be a response all the same
      if (sent < 0 && !is_cut && errno != EAGAIN && errno != EINTR)
        return base::system_error(errno, "cannot send to the daemon");
      request.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(sent, 0)));
    }
    const ssize_t got = ::recv(connection->get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return base::system_error(errno, "cannot read from the daemon");
    boost::system::error_code error;
    if (got == 0) {
      if (has_response_begun) parser.put_eof(error);
      if (!error && parser.is_done()) break;
      return base::Error(std::make_error_code(std::errc::connection_aborted),
                         "the daemon closed the connection without a whole response");
    }
    has_response_begun = true;
    received.append(chunk.data(), static_cast<std::size_t>(got));
    received.erase(0, parser.put(boost::asio::buffer(received), error));
    if (received.size() > header_bytes_max) error = http::error::header_limit;  // a line that does not end
    if (error && error != http::error::need_more)
      return base::Error(std::make_error_code(std::errc::protocol_error),
                         "the response is no HTTP response: " + error.message());
  }
  auto& parsed = parser.get();
  peer::HttpResponse response{.status = parsed.result_int(),
                              .content_type = std::string(parsed[http::field::content_type]),
                              .body = std::move(parsed.body())};
  if (response.status < 200 || (response.is_success() && !request.empty()))
    return base::Error(std::make_error_code(std::errc::protocol_error),
                       "the response is none to this request");
  if (parser.keep_alive() && request.empty() && received.empty()) {
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
