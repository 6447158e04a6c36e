#include "tests/support/notify_socket.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

namespace spoor::support {

NotifySocket::NotifySocket() : fd_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path().c_str(), sizeof(address.sun_path) - 1);
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::system_category(), "bind");
  }
  receiver_ = std::jthread([this] { receive(); });
}

NotifySocket::~NotifySocket() {
  ::shutdown(fd_, SHUT_RD);  // ends the receiving
  receiver_.join();
  ::close(fd_);
}

void NotifySocket::receive() {
  char message[4096];
  for (;;) {
    const ssize_t size = ::recv(fd_, message, sizeof(message), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return;
    const std::scoped_lock lock(mutex_);
    messages_.emplace_back(message, static_cast<std::size_t>(size));
    changed_.notify_all();
  }
}

std::string NotifySocket::wait_for(const std::string& text, std::size_t from) {
  std::unique_lock lock(mutex_);
  for (;;) {
    const auto start = messages_.begin() + static_cast<std::ptrdiff_t>(std::min(from, messages_.size()));
    const auto found = std::find_if(start, messages_.end(), [&](const std::string& message) {
      return message.find(text) != std::string::npos;
    });
    if (found != messages_.end()) return *found;
    changed_.wait(lock);
  }
}

bool NotifySocket::comes_within(std::chrono::milliseconds time, std::size_t from) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [&] { return messages_.size() > from; });
}

std::vector<std::string> NotifySocket::messages() {
  const std::scoped_lock lock(mutex_);
  return messages_;
}

}  // namespace spoor::support
