// What `spoor usage --cluster` and `spoor cluster` print of real nodes. Which responses are added up, and
// what is reported of the other nodes, is asserted in tests/daemon/cluster_usage_test.cpp.
#include "tests/cluster/cluster_usage.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <fstream>

namespace spoor::cluster {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ThreeNodesUsageTest : public ClusterUsageTest {
 protected:
  ThreeNodesUsageTest() : ClusterUsageTest(3) {
    for (Cluster::Node& each : cluster_.nodes()) write(each, "bucket/" + each.name + "/file", 7);
  }

  std::vector<const Cluster::Node*> nodes(const std::vector<std::size_t>& indices) {
    std::vector<const Cluster::Node*> nodes;
    for (const std::size_t index : indices) nodes.push_back(&node(index));
    return nodes;
  }
  // All that the answer says of the nodes that are missing, and of the sums of the others.
  void expect_missing(const Answer& answer, const std::multiset<std::string>& missing,
                      const std::vector<std::size_t>& counted) {
    EXPECT_EQ(answer.code, missing.empty() ? 0 : 3) << answer.err;
    EXPECT_EQ(answer.json["complete"], missing.empty());
    EXPECT_EQ(answer.missing(cluster_), missing) << answer.json;
    EXPECT_EQ(answer.totals(), count(nodes(counted)));
  }
};

TEST_F(ThreeNodesUsageTest, Owners_AreAddedUpWhereAllNodesKeepThem) {
  const auto keep = [](json& config) { config["usage"] = {{"owners", true}}; };
  for (const std::size_t index : {0U, 1U}) cluster_.configure(node(index), keep);
  scan_all();
  const Answer unknown = ask(node(0), {"--owner"});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("are not known on every node: set usage.owners"));
  cluster_.configure(node(2), keep);
  cluster_.scan(node(2));
  const Answer answer = ask(node(0), {"--owner"});
  EXPECT_EQ(answer.code, 0) << answer.err;
  const json& owners = answer.json["owners"];
  EXPECT_EQ(owners["complete"], true);
  ASSERT_EQ(owners["list"].size(), 1U) << owners;
  EXPECT_EQ(owners["list"][0]["uid"], ::geteuid());
  EXPECT_EQ(owners["list"][0]["files"], answer.json["files"]);
  EXPECT_EQ(owners["list"][0]["bytes"], answer.json["bytes"]);
}

TEST_F(ThreeNodesUsageTest, TopAndHistory_AreOfAllNodes) {
  write(node(1), "bucket/shared/large", 5000);
  write(node(2), "bucket/shared/large", 6000);
  scan_all();
  const auto reported = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"usage", "--cluster", "--json"});
    return cluster_.spoor(node(0), arguments);
  };
  const json top = json::parse(reported({"--top", "2"}).out);
  ASSERT_EQ(top["children"].size(), 2U) << top;
  EXPECT_EQ(top["children"][0]["path"], "bucket");
  EXPECT_EQ(top["children"][1]["path"], "bucket/shared");
  EXPECT_EQ(top["children"][1]["bytes"], 11'000);
  const auto history = reported({"--history", "bucket"});
  EXPECT_EQ(history.code, 0) << history.err;
  const json points = json::parse(history.out)["points"];
  ASSERT_FALSE(points.empty()) << history.out;
  EXPECT_EQ(points.back()["bytes"], ask(node(0), {"bucket"}).json["bytes"]);
  node(2).daemon.reset();
  EXPECT_EQ(reported({"--top", "2"}).code, 3);
  const auto without = reported({"--history", "bucket"});
  EXPECT_EQ(without.code, 3);
  EXPECT_THAT(without.err, HasSubstr("not every node reported its totals"));
}

// Its cursor in scan.db is all that is known of it.
TEST_F(ThreeNodesUsageTest, PeerOfTheLastScanThatIsNoMemberNow_IsMissing) {
  scan_all();
  cluster_.configure(node(0), [&](json& config) { config["peers"]["static"] = {url_of(node(1))}; });
  const Answer answer = ask(node(0));
  EXPECT_EQ(answer.code, 3);
  EXPECT_EQ(answer.json["complete"], false);
  EXPECT_THAT(answer.error_of("n2"), HasSubstr("the last scan knows it"));
  EXPECT_EQ(answer.totals(), count(nodes({0, 1})));
}

// Marks of the node that it did not reach may be missing from its totals.
TEST_F(ThreeNodesUsageTest, PartialScanOfOneNode_LeavesTheSumsIncomplete) {
  scan_all();
  cluster_.kill_hard(node(2));
  cluster_.scan(node(0), 3);
  cluster_.start(node(2));
  for (const std::size_t asked : {0U, 1U}) {
    const Answer answer = ask(node(asked));
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_EQ(answer.json["complete"], false) << asked;
    EXPECT_EQ(answer.json["children"][0]["complete"], false) << asked;
    EXPECT_EQ(answer.totals(), count(nodes({0, 1, 2})));
    for (const json& each : answer.json["nodes"]) EXPECT_EQ(each["complete"], each["name"] != "n0") << each;
  }
}

// It takes the connection, and peers.timeout bounds the wait.
TEST_F(ThreeNodesUsageTest, FrozenNode_IsMissing) {
  scan_all();  // with the longer default: a busy machine may need it
  cluster_.configure(node(0), [](json& config) { config["peers"]["timeout"] = "3s"; });
  node(1).daemon->freeze();
  const Answer answer = ask(node(0));
  EXPECT_EQ(answer.code, 3) << answer.err;
  EXPECT_NE(answer.error_of("n1"), "");
  node(1).daemon->signal(SIGCONT);
}

TEST_F(ThreeNodesUsageTest, TextAndCsv_NameTheMissingNodes) {
  scan_all();
  const auto text = [&](const std::vector<std::string>& more) {
    std::vector<std::string> arguments{"usage", "--cluster"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return cluster_.spoor(node(0), arguments);
  };
  EXPECT_EQ(text({}).code, 0);
  EXPECT_EQ(text({}).err, "");
  EXPECT_THAT(text({}).out, Not(HasSubstr("pending")));
  cluster_.kill_hard(node(2));
  for (const auto& result : {text({}), text({"--csv"})}) {
    EXPECT_EQ(result.code, 3);
    EXPECT_THAT(result.err, HasSubstr("not every node reported its totals:\n  "));
    EXPECT_THAT(result.err, HasSubstr(": included as of "));
    EXPECT_THAT(result.err, HasSubstr(url_of(node(2)))) << result.err;
    EXPECT_THAT(result.err, Not(HasSubstr(url_of(node(1))))) << result.err;
  }
  const auto csv = text({"--csv"}).out;
  EXPECT_THAT(csv,
              testing::StartsWith("path,depth,files,dirs,bytes,allocated,as_of,complete\r\n\"\",0,3,6,21,"));
  EXPECT_THAT(csv, HasSubstr("\"bucket\",1,3,3,21,"));
  EXPECT_THAT(csv, Not(HasSubstr(",true"))) << "the node may have more of each directory by now";
}

TEST_F(ThreeNodesUsageTest, Cluster_ListsEachNodeAndTheSums) {
  scan_all();
  const auto whole = cluster_.spoor(node(0), {"cluster", "--json"});
  EXPECT_EQ(whole.code, 0) << whole.err;
  const json listed = json::parse(whole.out);
  ASSERT_EQ(listed["nodes"].size(), 3U);
  EXPECT_EQ(listed["bytes"], 21);
  EXPECT_EQ(listed["nodes"][0]["state"], "this node");
  EXPECT_EQ(listed["nodes"][1]["bytes"], 7);
  cluster_.kill_hard(node(2));
  const auto text = cluster_.spoor(node(0), {"cluster"});
  EXPECT_EQ(text.code, 3);
  EXPECT_THAT(text.out, HasSubstr("as it was last: "));
  EXPECT_THAT(text.out, HasSubstr("21 B")) << "n2 is part of the sums";
  const auto unknown = cluster_.spoor(node(1), {"cluster"});
  EXPECT_EQ(unknown.code, 3);
  EXPECT_THAT(unknown.out, HasSubstr("14 B")) << "it never had the totals of n2";
}

TEST_F(ThreeNodesUsageTest, PeerThatRefusesTheRole_IsMissing) {
  scan_all();
  const auto token_file = [&](const std::string& role) {
    return cluster_.data_dir_of(node(1)).native() + "-token-" + role;
  };
  cluster_.configure(node(1), [&](json& config) {
    config["listen"][0].erase("insecure");
    for (const char* const role : {"peer", "mark"}) {
      std::ofstream(token_file(role)) << "a-token-of-the-role-" << role << '\n';
      config["auth"]["tokens"].push_back({{"name", role}, {"role", role}, {"file", token_file(role)}});
    }
  });
  const auto ask_with = [&](const std::string& role) {
    cluster_.configure(node(0), [&](json& config) {
      config["peers"]["static"] = json::array({tcp_url_of(node(1)), url_of(node(2))});
      config["peers"].erase("token_file");
      if (!role.empty()) config["peers"]["token_file"] = token_file(role);
    });
    return ask(node(0));
  };
  expect_missing(ask_with("peer"), {}, {0, 1, 2});
  for (const std::string role : {"mark", ""}) {
    const Answer refused = ask_with(role);
    EXPECT_EQ(refused.code, 3);
    EXPECT_EQ(refused.totals(), count(nodes({0, 2}))) << role;
    EXPECT_NE(refused.error_of(tcp_url_of(node(1))), "");
    EXPECT_THAT(refused.err, Not(HasSubstr("a-token"))) << "a token is a secret";
  }
}

TEST_F(ThreeNodesUsageTest, CopiesOnSeveralNodes_LogicalBytesAreThoseOfTheSum) {
  const std::vector<std::size_t> coded{0, 700, 0};  // 1.4 for 1: on two nodes only
  for (std::size_t index = 0; index < 3; ++index) {
    write(node(index), "replicas/x", 1000);
    write(node(index), "replicas/once/" + node(index).name, 101);  // a rule inside of another one's directory
    if (index > 0) write(node(index), "coded/x", coded[index]);
    cluster_.configure(node(index), [](json& config) {
      config["usage"]["copies"] = json::array({{{"path", "replicas/once"}, {"factor", 1}},
                                               {{"path", "repl*"}, {"factor", 3}},
                                               {{"path", "coded"}, {"factor", 1.4}}});
    });
  }
  scan_all();
  const Answer answer = ask(node(2));
  EXPECT_EQ(answer.totals(), count(nodes({0, 1, 2})));
  std::map<std::string, std::uint64_t> logical{{"", answer.json["logical_bytes"]}};
  for (const json& child : answer.json["children"]) logical[child["path"]] = child["logical_bytes"];
  EXPECT_EQ(logical, (std::map<std::string, std::uint64_t>{
                         {"", 21 + 1303 + 500}, {"bucket", 21}, {"replicas", 1303}, {"coded", 500}}));
}

}  // namespace
}  // namespace spoor::cluster
