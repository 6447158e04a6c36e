// Real nodes that find each other by a real etcd, which dies, hangs and comes back.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/clock.h"
#include "peer/cycle_opener.h"
#include "peer/etcd_roll.h"
#include "peer/http_transport.h"
#include "tests/cluster/cluster.h"
#include "tests/support/etcd_server.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class EtcdTest : public testing::Test {
 protected:
  // Changes node 0's drive, and tells only that node.
  void change_and_tell(const Cluster::Node& told) {
    const fs::path directory = cluster_.nodes()[0].drives[0] / "bucket" / ("d" + std::to_string(++changes_));
    fs::create_directories(directory);
    std::ofstream(directory / "file") << "12345";
    const auto marked = cluster_.spoor(told, {"mark", "bucket/d" + std::to_string(changes_)});
    ASSERT_EQ(marked.code, 0) << marked.err;
  }

  void expect_truth() {
    const auto& node = cluster_.nodes()[0];
    EXPECT_EQ(cluster_.usage(node), support::walk_independently(node.drives));
  }

  peer::HttpResponse get(const Cluster::Node& node, const std::string& target) {
    peer::HttpTransport transport({});
    return peer::exchange(transport, {{{}, 0, cluster_.socket_of(node).native()}, "GET", target, {}, {}})
        .value();
  }

  json etcd_status(const Cluster::Node& node) {
    return json::parse(get(node, "/v1/status").body)["membership"]["etcd"];
  }

  // A member that nobody started.
  peer::RollEntry enter_ghost(const std::string& url) {
    const auto lease = client_.grant(std::chrono::seconds(60)).value();
    EXPECT_TRUE(peer::enter_roll(client_, place_, {"ghost", url, "i"}, lease));
    return entry_of("ghost", peer::read_roll(client_, place_).value());
  }

  static peer::RollEntry entry_of(const std::string& name, const peer::Roll& roll) {
    const auto found = std::ranges::find_if(
        roll.entries, [&](const peer::RollEntry& entry) { return entry.member.node == name; });
    return found == roll.entries.end() ? peer::RollEntry() : *found;
  }

  support::EtcdServer etcd_;
  Cluster cluster_{3, 1, {{"endpoints", {etcd_.url()}}, {"ttl", "6s"}}};
  const base::SystemClock clock_;
  peer::HttpTransport transport_{{}};
  peer::EtcdClient client_{transport_, clock_, {peer::parse_endpoint(etcd_.url()).value()}, {}};
  const peer::EtcdPlace place_{"spoor", "test"};
  int changes_ = 0;
};

TEST_F(EtcdTest, NodesAreFoundWithoutAListOfThem) {
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

TEST_F(EtcdTest, ANodeThatIsDownStaysOnTheRoll) {
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

TEST_F(EtcdTest, WithoutEtcdScansGoOnWithTheMembersKnown) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  EXPECT_FALSE(nodes[0].daemon->wait_for("member 'n2' at").empty());
  etcd_.kill();
  change_and_tell(nodes[2]);
  const auto partial = cluster_.scan(nodes[0], 3);
  EXPECT_EQ(partial["mode"], "incremental") << "nobody is taken to be gone";
  expect_truth();
  for (const auto& node : nodes) EXPECT_FALSE(node.daemon->wait_for("etcd does not answer").empty());
  EXPECT_EQ(etcd_status(nodes[0])["ok"], false);
  EXPECT_EQ(etcd_status(nodes[0])["members"], 3);

  etcd_.start_again();
  for (const auto& node : nodes) {
    EXPECT_FALSE(node.daemon->wait_for("etcd answers again").empty());
    EXPECT_EQ(etcd_status(node)["registered"], true);
  }
  change_and_tell(nodes[1]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdTest, AnEtcdThatHangsHoldsNobodyUp) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  etcd_.freeze();
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0], 3)["mode"], "incremental");
  expect_truth();
  EXPECT_EQ(cluster_.stop(nodes[1]), 0);
  cluster_.start(nodes[1]);
  EXPECT_EQ(get(nodes[1], "/readyz").status, 200U) << "it was on the roll before";
  etcd_.thaw();
  EXPECT_FALSE(nodes[1].daemon->wait_for("registered in etcd").empty());
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
}

TEST_F(EtcdTest, ANodeThatNeverWasAMemberIsNotReadyWithoutEtcd) {
  auto& node = cluster_.nodes()[1];
  cluster_.stop(node);
  fs::remove_all(cluster_.data_dir_of(node));
  etcd_.kill();
  cluster_.start(node);
  const auto response = get(node, "/readyz");
  EXPECT_EQ(response.status, 503U);
  EXPECT_NE(response.body.find("not yet a member in etcd"), std::string::npos) << response.body;
  etcd_.start_again();
  EXPECT_FALSE(node.daemon->wait_for("etcd answers again").empty());
  EXPECT_EQ(get(node, "/readyz").status, 200U);
}

TEST_F(EtcdTest, ANodeThatWasAwayFromEtcdForLongIsNotReady) {
  auto& node = cluster_.nodes()[1];
  cluster_.stop(node);
  const fs::path file = cluster_.data_dir_of(node) / "registration.json";
  auto note = json::parse(std::ifstream(file));
  note["confirmed_ms"] = 1;
  std::ofstream(file) << note;
  etcd_.kill();
  cluster_.start(node);
  const auto response = get(node, "/readyz");
  EXPECT_EQ(response.status, 503U);
  EXPECT_NE(response.body.find("may have forgotten it"), std::string::npos) << response.body;
  etcd_.start_again();
  EXPECT_FALSE(node.daemon->wait_for("etcd answers again").empty());
  EXPECT_EQ(get(node, "/readyz").status, 200U);
}

// A pod, say, that took marks for an hour, at night.
TEST_F(EtcdTest, WhoCameAndWasForgottenBetweenTwoScansIsAGap) {
  const auto& node = cluster_.nodes()[0];
  cluster_.scan(node);
  const auto ghost = enter_ghost("http://192.0.2.1:7420");
  ASSERT_TRUE(client_.revoke(ghost.lease));
  auto roll = peer::read_roll(client_, place_).value();
  ASSERT_TRUE(peer::strike_from_roll(client_, place_, entry_of("ghost", roll), roll.forgotten).value());
  const auto full = cluster_.scan(node);
  EXPECT_EQ(full["mode"], "full");
  EXPECT_NE(full["reason"].get<std::string>().find("'ghost' was a member"), std::string::npos) << full;
  EXPECT_EQ(cluster_.scan(node)["mode"], "incremental");
}

TEST_F(EtcdTest, AnotherNodeAtAMembersAddressDoesNotStandForIt) {
  const auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  const auto ghost = enter_ghost("unix:" + cluster_.socket_of(nodes[1]).native());
  const auto partial = cluster_.scan(nodes[0], 3);
  EXPECT_EQ(partial["mode"], "incremental");
  EXPECT_EQ(partial["peers"][0]["name"], "ghost") << partial;
  EXPECT_EQ(partial["peers"][0]["ok"], false);

  // It was seen, so that it is a gap by itself when it is gone.
  ASSERT_TRUE(client_.revoke(ghost.lease));
  auto roll = peer::read_roll(client_, place_).value();
  ASSERT_TRUE(peer::strike_from_roll(client_, place_, entry_of("ghost", roll), roll.forgotten).value());
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "full");
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
}

TEST_F(EtcdTest, ANewEtcdCostsOneFullWalk) {
  const auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  etcd_.kill();
  for (const auto& node : nodes) EXPECT_FALSE(node.daemon->wait_for("etcd does not answer").empty());
  etcd_.start_empty();
  for (const auto& node : nodes) EXPECT_FALSE(node.daemon->wait_for("etcd answers again").empty());
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "full");
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdTest, WhileSomebodyElseOpensACycleAScanJoins) {
  const auto& node = cluster_.nodes()[0];
  const std::uint64_t cycle = cluster_.scan(node)["cycle"];
  EXPECT_EQ(cluster_.scan(node)["cycle"], cycle + 1);

  peer::CycleOpener somebody(client_, clock_, {.place = place_, .node = "somebody"});
  ASSERT_TRUE(somebody.take_turn());
  change_and_tell(cluster_.nodes()[2]);
  const auto joined = cluster_.scan(node, 0, {"--set", "peers.timeout=1s"});
  EXPECT_EQ(joined["cycle"], cycle + 1);
  EXPECT_EQ(joined["mode"], "incremental");
  expect_truth();
  somebody.give_back();
  EXPECT_EQ(cluster_.scan(node)["cycle"], cycle + 2);
}

}  // namespace
}  // namespace spoor::cluster
