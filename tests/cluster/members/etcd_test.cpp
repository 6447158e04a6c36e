// Real nodes that find each other by a real etcd, which dies, hangs and comes back.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cluster/members/etcd_fixture.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

TEST_F(EtcdTest, Membership_NoStaticPeers_FindsAllNodes) {
  const auto& nodes = cluster_.nodes();
  const auto first = cluster_.scan(nodes[0]);
  EXPECT_EQ(first["mode"], "full");
  EXPECT_EQ(first["peers"].size(), 3U) << "the node itself is on the roll, and asked once";
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  expect_truth();
  const auto status = etcd_status(nodes[2]);
  EXPECT_EQ(status, json({{"ok", true}, {"error", nullptr}, {"registered", true}, {"members", 3}}));
  EXPECT_FALSE(nodes[0].daemon->wait_for("peer n2 (").empty()) << "the status shows who joined later";
}

TEST_F(EtcdTest, NodeDown_StaysInTheMembership) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  for (const bool is_killed : {true, false}) {
    change_and_tell(nodes[2]);
    if (is_killed) {
      cluster_.kill_hard(nodes[2]);
    } else {
      EXPECT_EQ(cluster_.stop(nodes[2]), 0);
    }
    const auto partial = cluster_.scan(nodes[0], 3);
    EXPECT_EQ(partial["partial"], true);
    EXPECT_EQ(partial["mode"], "incremental");
    cluster_.start(nodes[2]);
    EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
    expect_truth();
  }
}

TEST_F(EtcdTest, EtcdDown_ScansUseLastKnownMembers) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  EXPECT_FALSE(nodes[0].daemon->wait_for("member 'n2' at").empty());
  etcd_.kill();
  change_and_tell(nodes[2]);
  const auto partial = cluster_.scan(nodes[0], 3);
  EXPECT_EQ(partial["mode"], "incremental") << "no peer is considered departed";
  expect_truth();
  for (const auto& node : nodes) EXPECT_FALSE(node.daemon->wait_for("etcd does not respond").empty());
  EXPECT_EQ(etcd_status(nodes[0])["ok"], false);
  EXPECT_EQ(etcd_status(nodes[0])["members"], 3);

  etcd_.start_again();
  for (const auto& node : nodes) {
    EXPECT_FALSE(node.daemon->wait_for("etcd responds again").empty());
    EXPECT_EQ(etcd_status(node)["registered"], true);
  }
  change_and_tell(nodes[1]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdTest, EtcdHangs_ScanAndRestartStillWork) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  etcd_.freeze();
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0], 3)["mode"], "incremental");
  expect_truth();
  EXPECT_EQ(cluster_.stop(nodes[1]), 0);
  cluster_.start(nodes[1]);
  expect_ready(nodes[1]);  // it was known shortly before
  etcd_.thaw();
  EXPECT_FALSE(nodes[1].daemon->wait_for("registered in etcd").empty());
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
}

TEST_F(EtcdTest, NodeNeverRegistered_EtcdDown_IsNotReady) {
  auto& node = cluster_.nodes()[1];
  cluster_.stop(node);
  fs::remove_all(cluster_.data_dir_of(node));
  etcd_.kill();
  cluster_.start(node);
  const auto response = get(node, "/readyz");
  EXPECT_EQ(response.status, 503U);
  EXPECT_NE(response.body.find("this node is new"), std::string::npos) << response.body;
  etcd_.start_again();
  EXPECT_FALSE(node.daemon->wait_for("etcd responds again").empty());
  expect_ready(node);
}

}  // namespace
}  // namespace spoor::cluster
