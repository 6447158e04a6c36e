#include "tests/support/canned_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "tests/support/loopback.h"

namespace spoor::support {
namespace {

// Returns false at the end of what the client sends.
bool receive_some(int fd, std::string& received) {
  std::array<char, 4096> bytes{};
  ssize_t count = -1;
  while ((count = ::recv(fd, bytes.data(), bytes.size(), 0)) < 0 && errno == EINTR) {
  }
  if (count <= 0) return false;
  received.append(bytes.data(), static_cast<std::size_t>(count));
  return true;
}

}  // namespace

bool CannedServer::Connection::send(const std::string& bytes) const {
  for (std::size_t sent = 0; sent < bytes.size();) {
    const ssize_t count = ::send(fd_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<std::size_t>(count);
  }
  return true;
}

void CannedServer::Connection::wait_until_closed() const {
  for (std::string ignored; receive_some(fd_, ignored);) ignored.clear();
}

CannedServer::CannedServer(Respond respond) : respond_(std::move(respond)) {
  accepting_ = std::jthread([this] { accept_all(); });
}

CannedServer::~CannedServer() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
    for (const int connection : connections_) ::shutdown(connection, SHUT_RDWR);
  }
  ::shutdown(listening_.fd(), SHUT_RDWR);
  accepting_.join();
  serving_.clear();
  for (const int connection : connections_) ::close(connection);
}

std::string CannedServer::url() const {
  return "http://" + own_loopback() + ':' + std::to_string(listening_.port());
}

std::string CannedServer::response(const std::string& body, const std::string& status) {
  return "HTTP/1.1 " + status +
         "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
         std::to_string(body.size()) + "\r\n\r\n" + body;
}

void CannedServer::accept_all() {
  for (;;) {
    const int connection = ::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0 && errno == EINTR) continue;
    if (connection < 0) return;
    const std::scoped_lock lock(mutex_);
    connections_.push_back(connection);  // closed in the end, so that no other gets its number
    if (is_stopping_) return;
    serving_.emplace_back([this, connection] { serve(connection); });
  }
}

void CannedServer::serve(int fd) {
  std::string received;
  while (received.find("\r\n\r\n") == std::string::npos) {
    if (!receive_some(fd, received)) return;
  }
  respond_(received.substr(0, received.find("\r\n")), Connection(fd));
  ::shutdown(fd, SHUT_WR);
  Connection(fd).wait_until_closed();  // unread bytes would reset the connection
}

}  // namespace spoor::support
