// A real DNS server on this machine, for the zone "test" only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/loopback.h"
#include "tests/support/process.h"

namespace spoor::support {

// dnsmasq on own_loopback(), on its own port. Names below "test" without a record do not exist; queries for
// other names are refused.
class DnsServer {
 public:
  // Records as dnsmasq's options, such as "--host-record=a.test,10.0.0.1".
  explicit DnsServer(const std::vector<std::string>& records);

  // The same server with other records.
  void restart(const std::vector<std::string>& records);

  // After this, no process listens on the port.
  void stop() { daemon_.reset(); }

  std::uint16_t port() const { return port_; }
  std::string address() const { return own_loopback() + ":" + std::to_string(port_); }

 private:
  bool start(const std::vector<std::string>& records);

  std::uint16_t port_ = 0;
  std::unique_ptr<Daemon> daemon_;
};

// A UDP socket on own_loopback() that receives everything and responds to nothing.
class SilentUdpPort {
 public:
  SilentUdpPort();
  SilentUdpPort(const SilentUdpPort&) = delete;
  SilentUdpPort& operator=(const SilentUdpPort&) = delete;
  ~SilentUdpPort();

  int fd() const { return fd_; }
  std::uint16_t port() const { return port_; }

 private:
  int fd_;
  std::uint16_t port_ = 0;
};

}  // namespace spoor::support
