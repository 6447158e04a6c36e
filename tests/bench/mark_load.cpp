#include "tests/bench/mark_load.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

#include "tests/support/loopback.h"

namespace spoor::bench {
namespace {

void check(bool done, const char* what) {
  if (!done) throw std::system_error(errno, std::system_category(), what);
}

// The length of the whole answer; nothing (0) while its header is not there.
std::size_t answer_bytes(std::string_view received) {
  constexpr std::string_view length = "Content-Length: ";
  constexpr std::string_view end = "\r\n\r\n";
  const std::size_t header_end = received.find(end);
  if (header_end == std::string_view::npos) return 0;
  const std::size_t at = received.substr(0, header_end).find(length);
  if (at == std::string_view::npos) throw std::runtime_error("an answer without a length");
  std::size_t body = 0;
  std::from_chars(received.data() + at + length.size(), received.data() + header_end, body);
  return header_end + end.size() + body;
}

}  // namespace

MarkLoad::MarkLoad(std::uint16_t port, std::size_t connections, NextPath next_path)
    : next_path_(std::move(next_path)), epoll_(::epoll_create1(EPOLL_CLOEXEC)), connections_(connections) {
  check(epoll_ >= 0, "epoll_create1");
  for (Connection& connection : connections_) open(connection, port);
}

MarkLoad::~MarkLoad() {
  for (const Connection& connection : connections_) ::close(connection.fd);
  ::close(epoll_);
}

void MarkLoad::open(Connection& connection, std::uint16_t port) const {
  connection.fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(connection.fd >= 0, "socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, support::own_loopback().c_str(), &address.sin_addr);
  const int on = 1;
  check(::connect(connection.fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0,
        "connect");
  check(::setsockopt(connection.fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "setsockopt");
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &connection;
  check(::epoll_ctl(epoll_, EPOLL_CTL_ADD, connection.fd, &event) == 0, "epoll_ctl");
}

void MarkLoad::send(const Connection& connection) const {
  const std::string path = next_path_();
  const std::string request = fmt::format(
      "POST /v1/marks HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: "
      "{}\r\n\r\n{}",
      path.size(), path);
  // One request under way: the socket's buffer is empty, and takes it whole.
  const ssize_t sent = ::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  check(sent == static_cast<ssize_t>(request.size()), "send");
}

// Whether the answer is there.
bool MarkLoad::receive(Connection& connection) const {
  std::array<char, 4096> chunk;
  const ssize_t got = ::recv(connection.fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got < 0 && errno == EAGAIN) return false;
  check(got >= 0, "recv");
  if (got == 0) throw std::runtime_error("the daemon ended a connection");
  std::string& received = connection.received;
  received.append(chunk.data(), static_cast<std::size_t>(got));
  const std::size_t whole = answer_bytes(received);
  if (whole == 0 || received.size() < whole) return false;
  if (received.size() > whole || !received.starts_with("HTTP/1.1 200 ")) {
    throw std::runtime_error("an unexpected answer: " + received);
  }
  received.clear();
  return true;
}

double MarkLoad::run(std::chrono::milliseconds time) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto deadline = start + time;
  for (const Connection& connection : connections_) send(connection);
  std::size_t under_way = connections_.size();
  std::size_t acknowledged = 0;
  std::array<epoll_event, 64> events;
  while (under_way > 0) {
    const int count = ::epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    check(count >= 0 || errno == EINTR, "epoll_wait");
    for (int i = 0; i < count; ++i) {
      Connection& connection = *static_cast<Connection*>(events[static_cast<std::size_t>(i)].data.ptr);
      if (!receive(connection)) continue;
      ++acknowledged;
      if (Clock::now() < deadline) {
        send(connection);
      } else {
        --under_way;
      }
    }
  }
  return static_cast<double>(acknowledged) / std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace spoor::bench
