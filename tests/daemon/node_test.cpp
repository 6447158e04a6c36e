#include "daemon/node.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <optional>

#include "tests/daemon/stepped_node.h"

namespace spoor::daemon {
namespace {

// The parts of a daemon, put together.
class NodeTest : public SteppedNode {
 protected:
  NodeTest() {
    config_.node.name = "node";
    config_.node.cluster = "cluster";
    config_.node.data_dir = "/data";
    config_.drives = drives_;
    config_.peers.dns.emplace_back().name = "x";  // not asked: the node is not started
    node_.emplace(context_, server_, config_, "1", *persistence_,
                  NodeSecrets{std::make_shared<const Access>(Access::load({}).value()), {}, {}}, clock_);
  }

  config::Config config_;
  HttpServer server_{context_, {}};
  std::optional<Node> node_;
};

TEST_F(NodeTest, ForgetAfterReloaded_IsInEffectAtOnce) {
  node_->introduction().open_alone();
  clock_.advance(config_.peers.forget_after / 4);
  EXPECT_TRUE(node_->introduction().is_open());
  auto fresh = config_.peers;
  fresh.forget_after /= 2;
  node_->set_peers(fresh);
  EXPECT_FALSE(node_->introduction().is_open()) << "it is known for half of that";
}

TEST_F(NodeTest, DnsNamesReloadedTwice_TheLastAreInEffect) {
  EXPECT_FALSE(node_->peers().is_dns_read());
  auto fresh = config_.peers;
  fresh.dns.clear();
  node_->set_peers(fresh);
  EXPECT_TRUE(node_->peers().is_dns_read()) << "there is no name";
  fresh.dns = config_.peers.dns;
  node_->set_peers(fresh);
  EXPECT_FALSE(node_->peers().is_dns_read()) << "as at the start, but not as before";
}

}  // namespace
}  // namespace spoor::daemon
