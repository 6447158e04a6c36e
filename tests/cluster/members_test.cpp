// `spoor members`, with a real etcd.
#include <gmock/gmock.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "tests/cluster/etcd_fixture.h"
#include "tests/support/listening_socket.h"
#include "tests/support/loopback.h"

namespace spoor::cluster {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class MembersTest : public EtcdTest {
 protected:
  Cluster::Node& node() { return cluster_.nodes()[0]; }

  // Their states, by node.
  std::map<std::string, std::string> states() {
    const auto listed = cluster_.spoor(node(), {"members", "--json"});
    EXPECT_EQ(listed.code, 0) << listed.err;
    std::map<std::string, std::string> states;
    const json parsed = json::parse(listed.out);
    for (const json& member : parsed["members"]) {
      if (member["source"] != "etcd") continue;
      states[member["node"]] = member["state"] == "not registered" ? "not registered" : "registered";
    }
    return states;
  }

  // Not registered: its lease is gone.
  void enter_dead(const std::string& name) {
    const auto lease = client_.grant(std::chrono::seconds(60)).value();
    enter(name, "unix:/nowhere/" + name, lease);
    ASSERT_TRUE(client_.revoke(lease));
  }
};

TEST_F(MembersTest, List_ShowsWhichMembersAreRegistered) {
  enter_dead("ghost");
  EXPECT_EQ(states(), (std::map<std::string, std::string>{
                          {"ghost", "not registered"}, {"n1", "registered"}, {"n2", "registered"}}));
  const auto text = cluster_.spoor(node(), {"members"});
  EXPECT_THAT(text.out, HasSubstr("ghost"));
  EXPECT_THAT(text.out, HasSubstr("not registered"));
}

TEST_F(MembersTest, Remove_StoppedNode_IsExpectedForSomeTime) {
  cluster_.scan(node());
  EXPECT_EQ(cluster_.stop(cluster_.nodes()[2]), 0);
  EXPECT_EQ(cluster_.scan(node(), 3)["partial"], true);
  const auto unsure = cluster_.spoor(node(), {"members", "remove", "n2"});
  EXPECT_EQ(unsure.code, 2);
  EXPECT_THAT(unsure.err, HasSubstr("give --yes"));
  EXPECT_EQ(states().count("n2"), 1U);
  const auto removed = cluster_.spoor(node(), {"members", "remove", "n2", "--yes"});
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_EQ(states().count("n2"), 0U);
  EXPECT_EQ(cluster_.scan(node(), 3)["mode"], "incremental");
  const auto full = cluster_.scan(node(), 0, {"--set", "peers.forget_after=0s"});
  EXPECT_EQ(full["mode"], "full");
  EXPECT_THAT(full["reason"].get<std::string>(), HasSubstr("is no longer among the peers"));
  EXPECT_EQ(cluster_.scan(node())["mode"], "incremental");
}

TEST_F(MembersTest, Remove_OnATerminal_AsksForConfirmation) {
  enter_dead("ghost");
  const std::string command = std::string(SPOOR) + " --config " + cluster_.config_of(node()).native() +
                              " members remove unix:/nowhere/ghost";
  const auto answer = [&](const std::string& text) {
    return support::run_command({"script", "-qec", command, "/dev/null"}, text);
  };
  const auto kept = answer("n\n");
  EXPECT_THAT(kept.out, HasSubstr("Remove it? [y/N]"));
  EXPECT_THAT(kept.out, HasSubstr("nothing was removed"));
  EXPECT_EQ(states().count("ghost"), 1U);
  EXPECT_THAT(answer("y\n").out, HasSubstr("removed 'ghost'"));
  EXPECT_EQ(states().count("ghost"), 0U);
}

TEST_F(MembersTest, Remove_RegisteredOrUnknownMember_IsRefused) {
  const auto alive = cluster_.spoor(node(), {"members", "remove", "n1", "--yes"});
  EXPECT_EQ(alive.code, 1);
  EXPECT_THAT(alive.err, HasSubstr("'n1' is registered: stop spoord there first"));
  const auto unknown = cluster_.spoor(node(), {"members", "remove", "nobody", "--yes"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("etcd lists no member 'nobody'"));
  enter_dead("ghost");
  const auto lease = client_.grant(std::chrono::seconds(60)).value();
  enter("ghost", "unix:/nowhere/other", lease);
  const auto both = cluster_.spoor(node(), {"members", "remove", "ghost", "--yes"});
  EXPECT_THAT(both.err, HasSubstr("'ghost' has several entries: give the URL of one"));
  EXPECT_EQ(states().size(), 3U);
}

// It lost etcd alone, and acknowledges marks: no scanner that joins later would ask it.
TEST_F(MembersTest, Remove_MemberStillRunning_IsRefused) {
  const auto lease = client_.grant(std::chrono::seconds(60)).value();
  enter("n1", "unix:" + (cluster_.socket_of(cluster_.nodes()[1]).parent_path() / "." / "n1.sock").native(),
        lease);
  ASSERT_TRUE(client_.revoke(lease));
  const std::string url =
      "unix:" + (cluster_.socket_of(cluster_.nodes()[1]).parent_path() / "." / "n1.sock").native();
  const auto refused = cluster_.spoor(node(), {"members", "remove", url, "--yes"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("'n1' runs at "));
}

// Any host may have registered the URL.
TEST_F(MembersTest, Remove_UrlKnownFromEtcdAlone_GetsNoToken) {
  const support::TempDirectory directory;
  std::ofstream(directory / "token") << "a-token-of-twenty-two\n";
  const support::ListeningSocket listening;
  cluster_.configure(node(), [&](json& config) { config["peers"]["token_file"] = directory / "token"; });
  const auto lease = client_.grant(std::chrono::seconds(60)).value();
  enter("ghost", "http://" + support::own_loopback() + ':' + std::to_string(listening.port()), lease);
  ASSERT_TRUE(client_.revoke(lease));
  std::string received(4096, '\0');
  std::thread host([&] {
    const int connection = ::accept(listening.fd(), nullptr, nullptr);
    received.resize(
        static_cast<std::size_t>(std::max<ssize_t>(0, ::read(connection, received.data(), received.size()))));
    ::close(connection);
  });
  const auto removed = cluster_.spoor(node(), {"members", "remove", "ghost", "--yes"});
  host.join();
  EXPECT_EQ(removed.code, 0) << removed.err;
  EXPECT_THAT(received, HasSubstr("POST /v1/peer/cycle"));
  EXPECT_THAT(received, testing::Not(HasSubstr("twenty-two")));
}

TEST_F(MembersTest, List_EtcdDown_IsReportedAsIncomplete) {
  etcd_.kill();
  const auto listed = cluster_.spoor(node(), {"members"});
  EXPECT_EQ(listed.code, 3);
  EXPECT_THAT(listed.err, HasSubstr("etcd: "));
  EXPECT_THAT(listed.out, HasSubstr("this node"));
}

// etcd is no peer: it holds no marks.
TEST_F(MembersTest, ScanAndStatus_EtcdDown_NameEtcdAndCountThePeers) {
  cluster_.scan(node());
  EXPECT_FALSE(node().daemon->wait_for("member 'n2' at").empty());
  EXPECT_THAT(cluster_.spoor(node(), {"status"}).out, HasSubstr("etcd       registered, 3 members known\n"));
  etcd_.kill();
  EXPECT_FALSE(node().daemon->wait_for("etcd does not respond").empty());
  EXPECT_THAT(cluster_.spoor(node(), {"status"}).out, HasSubstr("           failing: "));
  const auto partial = cluster_.scan(node(), 3);
  EXPECT_EQ(partial["partial"], true);
  EXPECT_EQ(partial["peers"].size(), 3U);
  for (const json& peer : partial["peers"]) EXPECT_EQ(peer["ok"], true) << peer;
  ASSERT_EQ(partial["unknown_sources"].size(), 1U);
  EXPECT_THAT(partial["unknown_sources"][0].get<std::string>(), testing::StartsWith("etcd"));
  const auto text = cluster_.spoor(node(), {"scan"});
  EXPECT_THAT(text.out, HasSubstr("peers      3 of 3 answered"));
  EXPECT_THAT(text.out, HasSubstr("left for next time: the members listed by etcd"));
}

}  // namespace
}  // namespace spoor::cluster
