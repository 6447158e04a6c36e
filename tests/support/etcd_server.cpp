#include "tests/support/etcd_server.h"

#include <filesystem>
#include <random>
#include <stdexcept>

namespace spoor::support {

EtcdServer::EtcdServer() {
  // Below the ports that the system hands out, so that nobody gets it while etcd is away.
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
  // Nobody connects to the peer URL of the only member.
  daemon_ = std::make_unique<Daemon>(std::vector<std::string>{
      "etcd", "--logger=zap", "--data-dir", (directory_ / "data").native(), "--listen-client-urls", url(),
      "--advertise-client-urls", url(), "--listen-peer-urls", "http://" + own_loopback() + ":0",
      "--initial-advertise-peer-urls", "http://127.0.0.1:1", "--initial-cluster",
      "default=http://127.0.0.1:1", "--heartbeat-interval=50", "--election-timeout=500"});
  return !daemon_->wait_for("serving client traffic").empty();
}

}  // namespace spoor::support
