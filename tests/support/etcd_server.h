// A real etcd on this machine.
#pragma once

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>

#include "tests/support/loopback.h"
#include "tests/support/process.h"
#include "tests/support/temp_directory.h"

namespace spoor::support {

// One member on own_loopback(), with a port and data of its own, which it keeps from start to start.
class EtcdServer {
 public:
  // Serves when it returns.
  EtcdServer();

  std::string url() const { return "http://" + own_loopback() + ":" + std::to_string(port_); }

  void kill() { daemon_.reset(); }
  void start_again();
  void start_empty();  // after kill(), as one that was set up anew
  void freeze() { daemon_->freeze(); }
  void thaw() { daemon_->signal(SIGCONT); }

 private:
  bool start();

  TempDirectory directory_;
  std::uint16_t port_ = 0;
  std::unique_ptr<Daemon> daemon_;
};

}  // namespace spoor::support
