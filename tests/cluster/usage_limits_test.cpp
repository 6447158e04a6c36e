// Limits of directories, of a node and of the cluster: every report names those that are exceeded, and a
// command runs once for each.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/cluster/cluster_usage.h"

namespace spoor::cluster {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
namespace fs = std::filesystem;

constexpr const char* of_cluster = "bucket exceeds its limit in the cluster: 21 B (limit 15 B)";
constexpr const char* of_node = "bucket/n0 exceeds its limit: 7 B (limit 3 B)";

class UsageLimitsTest : public ClusterUsageTest {
 protected:
  UsageLimitsTest() : ClusterUsageTest(3) {
    for (Cluster::Node& each : cluster_.nodes()) write(each, "bucket/" + each.name + "/file", 7);
    scan_all();
  }

  void set_limits(const json& limits, const std::string& then = "") {
    cluster_.configure(node(0), [&](json& config) {
      config["usage"] = {{"limits", limits},
                         {"limit_command",
                          "printf '%s|%s|%s|%s|%s\\n' \"$SPOOR_LIMIT_NODE\" "
                          "\"$SPOOR_LIMIT_PATH\" \"$SPOOR_LIMIT_SCOPE\" "
                          "\"$SPOOR_LIMIT_EXCEEDED\" \"$SPOOR_LIMIT_TEXT\" >>'" +
                              log().native() + "'; " + then}};
    });
  }

  fs::path log() { return work_ / "log"; }

  // What the command was called with since this was asked last.
  std::vector<std::string> take_calls() {
    std::vector<std::string> calls;
    std::istringstream lines(content(log()));
    for (std::string line; std::getline(lines, line);) calls.push_back(line);
    fs::remove(log());
    return calls;
  }

  void resize(std::size_t number, std::uintmax_t bytes) {
    const std::string path = "bucket/" + node(number).name + "/file";
    fs::resize_file(node(number).drives[0] / path, bytes);
    EXPECT_EQ(cluster_.spoor(node(number), {"mark", path}).code, 0);
    cluster_.scan(node(number));
  }

  std::string scan(int code = 0) {
    const auto result = cluster_.spoor(node(0), {"scan"});
    EXPECT_EQ(result.code, code) << result.err;
    return result.err;
  }

  std::string output(const std::vector<std::string>& arguments) {
    return cluster_.spoor(node(0), arguments).out;
  }

  support::TempDirectory work_;
};

TEST_F(UsageLimitsTest, ExceededLimits_AreNamedByEachReport) {
  set_limits({{{"path", "bucket"}, {"bytes", "15B"}, {"cluster", true}},
              {{"path", "bucket/n0"}, {"bytes", "3B"}},
              {{"path", "bucket"}, {"bytes", "15B"}}});
  const std::string said = scan();
  EXPECT_THAT(said, HasSubstr(of_cluster));
  EXPECT_THAT(said, HasSubstr(of_node));
  const std::string status = output({"status"});
  EXPECT_THAT(status, HasSubstr(of_cluster));
  EXPECT_THAT(status, HasSubstr(of_node));
  const std::string doctor = output({"doctor"});
  EXPECT_THAT(doctor, HasSubstr(of_cluster));
  EXPECT_THAT(doctor, HasSubstr(of_node));
  for (const auto& arguments :
       {std::vector<std::string>{"usage"}, {"usage", "bucket"}, {"usage", "bucket/n0"}}) {
    EXPECT_THAT(output(arguments), HasSubstr(of_node));
    EXPECT_THAT(output(arguments), Not(HasSubstr(of_cluster)));
  }
  EXPECT_THAT(output({"usage", "--cluster"}), HasSubstr(of_cluster));
  EXPECT_THAT(output({"usage", "--cluster"}), Not(HasSubstr(of_node)));
  EXPECT_THAT(output({"usage", "bucket/n1"}), Not(HasSubstr(of_node))) << "another directory";
  EXPECT_THAT(output({"usage", "--csv"}), Not(HasSubstr("exceeds")));
}

TEST_F(UsageLimitsTest, Command_RunsOnceUntilTheLimitWasKept) {
  set_limits({{{"path", "bucket"}, {"bytes", "15B"}, {"cluster", true}}});
  scan();
  EXPECT_THAT(take_calls(), ElementsAre(std::string("n0|bucket|cluster|bytes|") + of_cluster));
  scan();
  EXPECT_THAT(take_calls(), IsEmpty());
  resize(1, 1);
  EXPECT_THAT(scan(), Not(HasSubstr("exceeds")));
  EXPECT_THAT(take_calls(), IsEmpty());
  resize(1, 7);
  scan();
  EXPECT_EQ(take_calls().size(), 1U);
}

TEST_F(UsageLimitsTest, CommandThatFails_RunsAgain) {
  set_limits({{{"path", "bucket/n0"}, {"bytes", "3B"}}}, "exit 7");
  EXPECT_THAT(scan(3), HasSubstr("ended with code 7; it runs again after the next scan"));
  EXPECT_EQ(take_calls().size(), 1U);
  set_limits({{{"path", "bucket/n0"}, {"bytes", "3B"}}});
  scan();
  EXPECT_THAT(take_calls(), ElementsAre(std::string("n0|bucket/n0|node|bytes|") + of_node));
}

TEST_F(UsageLimitsTest, NodeThatIsDown_CountsAsItWas) {
  set_limits({{{"path", "bucket"}, {"bytes", "15B"}, {"cluster", true}}});
  scan();
  cluster_.kill_hard(node(2));
  EXPECT_THAT(scan(3), HasSubstr(of_cluster));
  const auto status = json::parse(output({"status", "--json"}));
  EXPECT_EQ(status["limits"][0]["current"]["complete"], false);
  EXPECT_EQ(status["limits"][0]["scope"], "cluster");
  cluster_.configure(node(0), [](json&) {});  // its daemon no longer knows the totals of the other
  EXPECT_THAT(scan(3), HasSubstr(of_cluster)) << "it is not known to be kept";
}

}  // namespace
}  // namespace spoor::cluster
