#include "tests/support/etcd_server.h"

#include <filesystem>
#include <random>
#include <stdexcept>
#include <utility>
#include <vector>

namespace spoor::support {

EtcdServer::EtcdServer(std::optional<Tls> tls) : tls_(std::move(tls)) {
  // Below the ephemeral ports, so that no other process gets it while etcd is down.
  std::random_device random;
  std::uniform_int_distribution<std::uint16_t> ports(20'000, 29'999);
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = ports(random);
    if (start()) return;
  }
  throw std::runtime_error("etcd does not start: " + daemon_->log());
}

void EtcdServer::start_again() {
  if (!start()) throw std::runtime_error("etcd does not start again: " + daemon_->log());
}

void EtcdServer::start_empty() {
  std::filesystem::remove_all(directory_ / "data");
  start_again();
}

bool EtcdServer::start() {
  // No client connects to the peer URL of the only member.
  std::vector<std::string> command{"etcd",
                                   "--logger=zap",
                                   "--data-dir",
                                   (directory_ / "data").native(),
                                   "--listen-client-urls",
                                   url(),
                                   "--advertise-client-urls",
                                   url(),
                                   "--listen-peer-urls",
                                   "http://" + own_loopback() + ":0",
                                   "--initial-advertise-peer-urls",
                                   "http://127.0.0.1:1",
                                   "--initial-cluster",
                                   "default=http://127.0.0.1:1",
                                   "--heartbeat-interval=50",
                                   "--election-timeout=500",
                                   "--bcrypt-cost=4"};
  if (tls_) {
    command.insert(command.end(),
                   {"--cert-file", tls_->certificate.native(), "--key-file", tls_->key.native()});
    if (!tls_->client_ca.empty()) {
      command.insert(command.end(), {"--client-cert-auth", "--trusted-ca-file", tls_->client_ca.native()});
    }
  }
  daemon_ = std::make_unique<Daemon>(command);
  return !daemon_->wait_for("serving client traffic").empty();
}

}  // namespace spoor::support
