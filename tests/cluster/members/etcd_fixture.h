// Nodes that find each other by a real etcd.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "base/clock.h"
#include "peer/http/http_transport.h"
#include "peer/membership/etcd_registry.h"
#include "tests/cluster/cluster.h"
#include "tests/support/etcd_server.h"

namespace spoor::cluster {

// Three nodes with a drive each.
class EtcdTest : public testing::Test {
 protected:
  // Changes node 0's drive, and tells only that node.
  void change_and_tell(const Cluster::Node& told) { cluster_.change_and_tell(told); }

  void expect_truth() { cluster_.expect_truth(cluster_.nodes()[0]); }

  peer::HttpResponse get(const Cluster::Node& node, const std::string& target) {
    peer::HttpTransport transport({.timeout = std::chrono::minutes(2)});
    return peer::exchange(transport, {{{}, 0, cluster_.socket_of(node).native()}, "GET", target, {}, {}})
        .value();
  }

  // Until it is.
  void expect_ready(const Cluster::Node& node) {
    while (get(node, "/readyz").status != 200U) std::this_thread::yield();
  }

  nlohmann::json etcd_status(const Cluster::Node& node) {
    return nlohmann::json::parse(get(node, "/v1/status").body)["membership"]["etcd"];
  }

  static peer::RegistryEntry entry_of(const std::string& name,
                                      const std::vector<peer::RegistryEntry>& registry) {
    const auto found = std::ranges::find_if(
        registry, [&](const peer::RegistryEntry& entry) { return entry.member.node == name; });
    return found == registry.end() ? peer::RegistryEntry() : *found;
  }

  support::EtcdServer etcd_;
  Cluster cluster_{3, 1, {{"endpoints", {etcd_.url()}}, {"ttl", "6s"}}};
  const base::SystemClock clock_;
  peer::HttpTransport transport_{{}};
  peer::EtcdClient client_{transport_, clock_, {base::parse_endpoint(etcd_.url()).value()}, {}};
  const peer::EtcdLocation place_{"spoor", "test"};
};

}  // namespace spoor::cluster
