// A listening socket of the test, as systemd passes them to a service.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>

namespace spoor::support {

class ListeningSocket {
 public:
  // On own_loopback(), on a port that was free.
  ListeningSocket();

  // On a Unix socket.
  explicit ListeningSocket(const std::filesystem::path& path);

  ListeningSocket(const ListeningSocket&) = delete;
  ListeningSocket& operator=(const ListeningSocket&) = delete;
  ~ListeningSocket();

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }

  // Waits for one connection, calls `meanwhile`, then stops listening and closes the connection.
  void take_one_and_stop(const std::function<void()>& meanwhile) const;

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace spoor::support
