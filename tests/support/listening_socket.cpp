#include "tests/support/listening_socket.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "tests/support/loopback.h"

namespace spoor::support {
namespace {

template <class Address>
void listen_on(int fd, const Address& address) {
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 ||
      ::listen(fd, SOMAXCONN) != 0) {
    throw std::system_error(errno, std::system_category(), "listen");
  }
}

}  // namespace

ListeningSocket::ListeningSocket() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, own_loopback().c_str(), &address.sin_addr);
  listen_on(fd_, address);
  socklen_t size = sizeof(address);
  ::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size);
  port_ = ntohs(address.sin_port);
}

ListeningSocket::ListeningSocket(const std::filesystem::path& path)
    : fd_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  listen_on(fd_, address);
}

ListeningSocket::~ListeningSocket() { ::close(fd_); }

void ListeningSocket::take_one_and_stop(const std::function<void()>& meanwhile) const {
  int client = -1;
  while ((client = ::accept(fd_, nullptr, nullptr)) < 0 && errno == EINTR) {
  }
  meanwhile();
  ::shutdown(fd_, SHUT_RDWR);
  ::close(client);
}

}  // namespace spoor::support
