#include "tests/support/raw_client.h"

#include <arpa/inet.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <thread>

#include "tests/support/loopback.h"

namespace spoor::support {

RawClient::RawClient(std::uint16_t port, const std::string& source)
    : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  if (!source.empty()) {
    address.sin_family = AF_INET;
    ::inet_pton(AF_INET, source.c_str(), &address.sin_addr);
    if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0)
      throw std::system_error(errno, std::system_category(), "bind");
  }
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  ::inet_pton(AF_INET, own_loopback().c_str(), &address.sin_addr);
  if (::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::system_category(), "connect");
  }
}

RawClient::~RawClient() { ::close(fd_); }

void RawClient::send(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t sent = ::send(fd_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
    if (sent <= 0) return;  // the other side has closed the connection; its response has the reason
    done += static_cast<std::size_t>(sent);
  }
}

void RawClient::wait_until_received() const {
  for (int unsent = 1; ::ioctl(fd_, SIOCOUTQ, &unsent) == 0 && unsent > 0;) std::this_thread::yield();
}

void RawClient::end_sending() { ::shutdown(fd_, SHUT_WR); }

bool RawClient::receive_some() {
  char chunk[4096];
  const ssize_t got = ::recv(fd_, chunk, sizeof(chunk), 0);
  if (got <= 0) return false;
  received_.append(chunk, static_cast<std::size_t>(got));
  return true;
}

std::string RawClient::receive_all() {
  while (receive_some()) {
  }
  return received_;
}

std::string RawClient::receive_until(const std::string& text) {
  while (received_.find(text) == std::string::npos && receive_some()) {
  }
  return received_;
}

}  // namespace spoor::support
