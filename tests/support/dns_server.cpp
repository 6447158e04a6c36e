#include "tests/support/dns_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>
#include <system_error>

namespace spoor::support {

DnsServer::DnsServer(const std::vector<std::string>& records) {
  // Another process may take the port between the search for it and the start.
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = SilentUdpPort().port();
    if (start(records)) return;
  }
  throw std::runtime_error("dnsmasq does not start: " + daemon_->log());
}

void DnsServer::restart(const std::vector<std::string>& records) {
  daemon_.reset();
  if (!start(records)) throw std::runtime_error("dnsmasq does not start again: " + daemon_->log());
}

bool DnsServer::start(const std::vector<std::string>& records) {
  std::vector<std::string> command{"dnsmasq",
                                   "--no-daemon",
                                   "--conf-file=/dev/null",
                                   "--no-resolv",
                                   "--no-hosts",
                                   "--local=/test/",
                                   "--listen-address=" + own_loopback(),
                                   "--bind-interfaces",
                                   "--port=" + std::to_string(port_)};
  command.insert(command.end(), records.begin(), records.end());
  daemon_ = std::make_unique<Daemon>(command);
  return !daemon_->wait_for("dnsmasq: started, ").empty();
}

SilentUdpPort::SilentUdpPort() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, own_loopback().c_str(), &address.sin_addr);
  socklen_t size = sizeof(address);
  auto* const plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd_, plain, size) != 0 || ::getsockname(fd_, plain, &size) != 0) {
    throw std::system_error(errno, std::system_category(), "a free UDP port");
  }
  port_ = ntohs(address.sin_port);
}

SilentUdpPort::~SilentUdpPort() { ::close(fd_); }

}  // namespace spoor::support
