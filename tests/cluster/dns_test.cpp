// Real nodes that find each other by the SRV records of a real DNS server.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cluster/cluster.h"
#include "tests/support/dns_server.h"
#include "tests/support/loopback.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class DnsTest : public testing::Test {
 protected:
  DnsTest() {
    for (const auto& node : cluster_.nodes()) list(node);
    publish();
  }

  // The address at which the node listens now, with the next publish().
  void list(const Cluster::Node& node) {
    const std::string port = node.daemon->wait_for("listening on http://" + support::own_loopback() + ":");
    ASSERT_FALSE(port.empty()) << node.daemon->log();
    records_[node.name] = "--srv-host=_spoor._tcp.test,node.test," + port;
  }

  void publish() {
    std::vector<std::string> records{"--host-record=node.test," + support::own_loopback()};
    for (const auto& [name, record] : records_) records.push_back(record);
    dns_.restart(records);
  }

  std::vector<std::string> by_name(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments{"--set", "peers.static=[]",
                                       "--set", "peers.dns=[\"srv:_spoor._tcp.test\"]",
                                       "--set", "peers.dns_servers=[\"" + dns_.address() + "\"]"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }

  // Changes node 0's drive, and tells only that node.
  void change_and_tell(const Cluster::Node& told) {
    const fs::path bucket = cluster_.nodes()[0].drives[0] / "bucket";
    fs::create_directories(bucket / ("d" + std::to_string(++changes_)));
    std::ofstream(bucket / ("d" + std::to_string(changes_)) / "file") << "12345";
    const auto marked = cluster_.spoor(told, {"mark", "bucket/d" + std::to_string(changes_)});
    ASSERT_EQ(marked.code, 0) << marked.err;
  }

  void expect_truth() {
    const auto& node = cluster_.nodes()[0];
    EXPECT_EQ(cluster_.usage(node), support::walk_independently(node.drives));
  }

  Cluster cluster_{3, 1};
  support::DnsServer dns_{{}};
  std::map<std::string, std::string> records_;
  int changes_ = 0;
};

TEST_F(DnsTest, NodesAreFoundByTheirServiceRecords) {
  const auto& nodes = cluster_.nodes();
  const auto first = cluster_.scan(nodes[0], 0, by_name());
  EXPECT_EQ(first["peers"].size(), 3U) << "the node itself is in the list, and asked once";
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0], 0, by_name())["mode"], "incremental");
  expect_truth();
}

// As in Kubernetes: the address leaves the name when the node goes, and another one comes with it.
TEST_F(DnsTest, ANodeThatIsBackElsewhereBringsItsMarks) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0], 0, by_name());
  change_and_tell(nodes[2]);
  cluster_.stop(nodes[2]);
  records_.erase("n2");
  publish();
  const auto partial = cluster_.scan(nodes[0], 3, by_name());
  EXPECT_EQ(partial["partial"], true) << "its address is still asked";
  EXPECT_EQ(partial["mode"], "incremental");

  cluster_.start(nodes[2]);
  list(nodes[2]);
  publish();
  EXPECT_EQ(cluster_.scan(nodes[0], 0, by_name())["mode"], "incremental");
  expect_truth();
}

TEST_F(DnsTest, ANodeThatIsGoneForGoodCostsOneFullWalk) {
  auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0], 0, by_name());
  change_and_tell(nodes[2]);
  cluster_.stop(nodes[2]);
  records_.erase("n2");
  publish();
  cluster_.scan(nodes[0], 3, by_name());
  const auto without = by_name({"--set", "peers.forget_after=0s"});
  cluster_.scan(nodes[0], 3, without);  // asks it for the last time
  EXPECT_EQ(cluster_.scan(nodes[0], 0, without)["mode"], "full");
  expect_truth();
  EXPECT_EQ(cluster_.scan(nodes[0], 0, without)["mode"], "incremental");
}

// As a pod that is not ready: its name does not have it, and it goes on acknowledging marks.
TEST_F(DnsTest, ALivingNodeIsAskedHoweverLongItsNameDoesNotHaveIt) {
  const auto& nodes = cluster_.nodes();
  const auto without = by_name({"--set", "peers.forget_after=0s"});
  cluster_.scan(nodes[0], 0, without);
  records_.erase("n2");
  publish();
  for (int scan = 0; scan < 3; ++scan) {
    change_and_tell(nodes[2]);
    const auto whole = cluster_.scan(nodes[0], 0, without);
    EXPECT_EQ(whole["mode"], "incremental");
    EXPECT_EQ(whole["note"], nullptr);
    expect_truth();
  }
}

TEST_F(DnsTest, WithoutADnsServerWhoeverWasThereLastIsAsked) {
  const auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0], 0, by_name());
  change_and_tell(nodes[2]);
  dns_.stop();
  const auto partial = cluster_.scan(nodes[0], 3, by_name({"--set", "peers.timeout=5s"}));
  EXPECT_EQ(partial["mode"], "incremental") << "nobody is taken to be gone";
  EXPECT_EQ(partial["peers"].size(), 3U) << partial;
  expect_truth();

  publish();
  EXPECT_EQ(cluster_.scan(nodes[0], 0, by_name())["mode"], "incremental");
}

TEST_F(DnsTest, ADryRunRemembersNobody) {
  const auto& node = cluster_.nodes()[0];
  const auto dry = cluster_.scan(node, 0, by_name({"--dry-run"}));
  EXPECT_EQ(dry["peers"].size(), 3U);
  EXPECT_FALSE(fs::exists(cluster_.data_dir_of(node) / "members.json"));
  cluster_.scan(node, 0, by_name());
  EXPECT_TRUE(fs::exists(cluster_.data_dir_of(node) / "members.json"));
}

}  // namespace
}  // namespace spoor::cluster
