// A socket of the test's own that listens, as systemd holds them.
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

  // Waits until somebody connects; his connection ends, and nobody gets another one.
  void take_one_and_stop(const std::function<void()>& meanwhile) const;

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace spoor::support
