// `spoor members`, with a real etcd.
#include <gmock/gmock.h>

#include "tests/cluster/members/etcd_fixture.h"

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
};

TEST_F(MembersTest, List_ShowsWhichMembersAreRegistered) {
  const auto ended = client_.grant(std::chrono::seconds(60)).value();
  const auto lasting = client_.grant(std::chrono::minutes(10)).value();
  ASSERT_TRUE(peer::register_member(client_, place_, {"ghost", "unix:/nowhere/ghost", "i"}, lasting, ended));
  ASSERT_TRUE(client_.revoke(ended));
  EXPECT_EQ(states(), (std::map<std::string, std::string>{
                          {"ghost", "not registered"}, {"n1", "registered"}, {"n2", "registered"}}));
  const auto text = cluster_.spoor(node(), {"members"});
  EXPECT_THAT(text.out, HasSubstr("ghost"));
  EXPECT_THAT(text.out, HasSubstr("not registered"));
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
  EXPECT_THAT(text.out, HasSubstr("3 of 3 nodes responded"));
  EXPECT_THAT(text.out, HasSubstr("left for next time: the members listed by etcd"));
}

}  // namespace
}  // namespace spoor::cluster
