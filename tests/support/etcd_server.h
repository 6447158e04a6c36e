// A real etcd on this machine.
#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::support {

// One member on own_loopback(). Its port and its data stay the same across restarts.
class EtcdServer {
 public:
  // PEM files. Clients must have a certificate of `client_ca`, unless it is empty. etcd is a client of
  // itself, with `certificate`.
  struct Tls {
    std::filesystem::path certificate;
    std::filesystem::path key;
    std::filesystem::path client_ca;
  };

  // Returns when it serves.
  explicit EtcdServer(std::optional<Tls> tls = {});

  std::string url() const {
    return (tls_ ? "https://" : "http://") + own_loopback() + ":" + std::to_string(port_);
  }

  void kill() { daemon_.reset(); }
  void start_again();
  void start_empty();  // after kill(), with empty data
  void freeze() { daemon_->freeze(); }
  void thaw() { daemon_->signal(SIGCONT); }

 private:
  bool start();

  const std::optional<Tls> tls_;
  TempDirectory directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace spoor::support
