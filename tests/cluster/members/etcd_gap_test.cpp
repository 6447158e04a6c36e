// What a scan may not have seen of a cluster's members in a real etcd: members that came and went, took a
// name over, or were never registered.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <set>

#include "tests/cluster/members/etcd_fixture.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

class EtcdGapTest : public EtcdTest {
 protected:
  // Another daemon of the cluster, on a data directory of its own.
  struct Other {
    fs::path config;
    fs::path data_dir;
    fs::path socket;
    std::unique_ptr<support::Daemon> daemon;
  };

  // `tag` names its files; an etcd that is not there is one it can't reach.
  Other start_other(const std::string& name, const std::string& tag, const std::string& etcd_url = {}) {
    const auto& like = cluster_.nodes()[2];
    json config = json::parse(std::ifstream(cluster_.config_of(like)));
    const fs::path folder = cluster_.config_of(like).parent_path();
    Other other{folder / (tag + ".json"), folder / (tag + "-data"), folder / (tag + ".sock"), nullptr};
    fs::create_directories(folder / (tag + "-drive"));
    config["node"]["name"] = name;
    config["node"]["data_dir"] = other.data_dir;
    config["drives"] = {folder / (tag + "-drive")};
    config["listen"] = {{{"unix", other.socket}}};
    config["peers"]["etcd"]["url"] = "unix:" + other.socket.native();
    if (!etcd_url.empty()) config["peers"]["etcd"]["endpoints"] = {etcd_url};
    std::ofstream(other.config) << config;
    other.daemon = std::make_unique<support::Daemon>(
        std::vector<std::string>{SPOORD, "--config", other.config.native()});
    EXPECT_FALSE(other.daemon->wait_for("listening on unix:").empty()) << other.daemon->log();
    return other;
  }

  static void stop(Other& other) {
    other.daemon->signal(SIGTERM);
    EXPECT_EQ(other.daemon->wait(), 0);
  }

  // Changes node 0's drive and tells only that daemon; gives what `spoor mark` ended with.
  int change_and_tell(const Other& told, const std::string& timeout_s = "60") {
    const std::string path = "bucket/other" + std::to_string(++others_);
    fs::create_directories(cluster_.nodes()[0].drives[0] / path);
    std::ofstream(cluster_.nodes()[0].drives[0] / path / "file") << "12345";
    return support::run_command(
               {SPOOR, "--config", told.config.native(), "mark", "--timeout", timeout_s, path}, "")
        .code;
  }
  using EtcdTest::change_and_tell;

  void replace_etcd() {
    etcd_.kill();
    for (const auto& node : cluster_.nodes()) {
      EXPECT_FALSE(node.daemon->wait_for("etcd does not respond").empty());
    }
    etcd_.start_empty();
    for (const auto& node : cluster_.nodes()) {
      EXPECT_FALSE(node.daemon->wait_for("etcd responds again").empty());
    }
  }

  json scan(int code = 0, const std::vector<std::string>& more = {}) {
    return cluster_.scan(cluster_.nodes()[0], code, more);
  }

  int others_ = 0;
};

// A pod, say, that took marks for an hour, at night.
TEST_F(EtcdGapTest, MemberJoinedAndLeftBetweenScans_ScanIsPartialUntilItIsRead) {
  scan();
  Other pod = start_other("pod", "pod");
  ASSERT_EQ(change_and_tell(pod), 0);
  stop(pod);
  const auto registry = peer::read_registry(client_, place_).value();
  ASSERT_TRUE(client_.revoke(entry_of("pod", registry).lease));
  const auto partial = scan(3);
  EXPECT_EQ(partial["mode"], "incremental");
  EXPECT_EQ(partial["peers"][3]["name"], "pod") << partial;
  EXPECT_EQ(partial["peers"][3]["ok"], false);
  pod = start_other("pod", "pod");
  EXPECT_EQ(scan()["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdGapTest, EtcdReplaced_CostsNothing) {
  const auto& nodes = cluster_.nodes();
  cluster_.scan(nodes[0]);
  replace_etcd();
  change_and_tell(nodes[2]);
  EXPECT_EQ(cluster_.scan(nodes[0])["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdGapTest, DuplicateNodeName_BothAreRead) {
  auto& nodes = cluster_.nodes();
  scan();
  EXPECT_EQ(cluster_.stop(nodes[2]), 0);
  Other other = start_other("n2", "stand-in");
  ASSERT_EQ(change_and_tell(other), 0);
  stop(other);
  cluster_.start(nodes[2]);
  EXPECT_EQ(scan(3)["partial"], true) << "the stand-in was not read";
  other = start_other("n2", "stand-in");
  EXPECT_EQ(scan()["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdGapTest, SameNodeAndAddressWithOtherDataDir_IsAGap) {
  auto& node = cluster_.nodes()[2];
  scan();
  EXPECT_EQ(cluster_.stop(node), 0);
  const json config = json::parse(std::ifstream(cluster_.config_of(node)));
  json other = config;
  other["node"]["data_dir"] = cluster_.data_dir_of(node).native() + "-2";
  other["drives"] = {node.drives[0].native() + "-2"};
  fs::create_directory(node.drives[0].native() + "-2");
  std::ofstream(cluster_.config_of(node)) << other;
  cluster_.start(node);
  change_and_tell(node);
  EXPECT_EQ(cluster_.stop(node), 0);
  std::ofstream(cluster_.config_of(node)) << config;
  cluster_.start(node);
  EXPECT_EQ(scan(3)["partial"], true) << "an instance that joined a moment ago may only be late";
  EXPECT_EQ(scan()["mode"], "full");
  expect_truth();
  EXPECT_EQ(scan()["mode"], "incremental");
}

TEST_F(EtcdGapTest, MemberKeyDeletedByHand_MemberIsExpected) {
  scan();
  Other other = start_other("n9", "n9");
  ASSERT_EQ(change_and_tell(other), 0);
  stop(other);
  const auto registry = peer::read_registry(client_, place_).value();
  const std::string key = "spoor/test/members/n9/unix%3A";
  const auto entries = client_.list({key, key + "~"}).value();
  ASSERT_EQ(entries.size(), 1U);
  ASSERT_TRUE(client_.revoke(entries[0].lease));
  EXPECT_EQ(scan(3)["mode"], "incremental");
  other = start_other("n9", "n9");
  EXPECT_EQ(scan()["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdGapTest, NodeNotInMembership_DoesNotAcknowledgeMarks) {
  scan();
  Other other = start_other("n9", "n9", "http://" + support::own_loopback() + ":1");
  EXPECT_NE(change_and_tell(other, "2"), 0);
}

// Still with the address of the etcd that was: it was a member an hour ago, as far as it knows.
TEST_F(EtcdGapTest, EtcdReplaced_MemberNotRegisteredAnew_IsStillAsked) {
  Other other = start_other("n9", "n9");
  scan();
  stop(other);
  replace_etcd();
  EXPECT_EQ(scan(3)["mode"], "incremental") << "it may be back";
  other = start_other("n9", "n9", "http://" + support::own_loopback() + ":1");
  ASSERT_EQ(change_and_tell(other), 0);
  EXPECT_EQ(scan()["mode"], "incremental");
  expect_truth();
}

TEST_F(EtcdGapTest, Node_OwnUrlUnreachable_ScanIsComplete) {
  auto& node = cluster_.nodes()[0];
  cluster_.stop(node);
  json config = json::parse(std::ifstream(cluster_.config_of(node)));
  config["peers"]["etcd"]["url"] = "http://" + support::own_loopback() + ":9";
  std::ofstream(cluster_.config_of(node)) << config;
  cluster_.start(node);
  const auto first = scan();
  EXPECT_EQ(first["partial"], false) << first;
}

TEST_F(EtcdGapTest, ManyHangingMembers_ReachableMembersAreStillRead) {
  auto& nodes = cluster_.nodes();
  scan();
  const fs::path folder = cluster_.config_of(nodes[0]).parent_path();
  const int hole = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);  // takes connections, and no more
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = (folder / "hole").native();
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  ASSERT_EQ(::bind(hole, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(::listen(hole, 4096), 0);
  // Written as they are, since one after the other takes long.
  std::vector<peer::EtcdPut> members;
  for (int i = 0; i < 400; ++i) {
    const fs::path link = folder / ("a" + std::to_string(i));
    fs::create_symlink(path, link);
    const std::string node = "pod" + std::to_string(i);
    std::string key = "spoor/test/members/" + node + "/unix%3A";
    for (const char each : link.native()) key += each == '/' ? "%2F" : std::string(1, each);
    members.push_back(
        {key, json{{"node", node}, {"url", "unix:" + link.native()}, {"instance", "i"}}.dump()});
    if (members.size() < 100) continue;
    ASSERT_TRUE(client_.put(members));
    members.clear();
  }
  ASSERT_EQ(peer::read_registry(client_, place_).value().size(), 403U);
  // None of them is alive, or has acknowledged a mark.
  const auto report = scan(0, {"--set", "peers.timeout=3s"});
  std::set<std::string> answered;
  for (const json& peer : report["peers"]) {
    if (peer["ok"] == true) answered.insert(peer["name"]);
  }
  EXPECT_EQ(answered, (std::set<std::string>{"n0", "n1", "n2"}));
  ::close(hole);
  for (auto& node : nodes) cluster_.kill_hard(node);  // a stop would wait for those who ask the dead
}

}  // namespace
}  // namespace spoor::cluster
