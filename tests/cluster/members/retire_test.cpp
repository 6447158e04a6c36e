// Nodes that retire: real processes, scans and trees.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/cluster/cluster.h"
#include "tests/support/tree_totals.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class RetireTest : public testing::Test {
 protected:
  static constexpr int directories = 40;

  RetireTest() {
    for (const auto& node : nodes()) {
      for (int number = 0; number < directories; ++number) make(node, number);
    }
    for (const auto& node : nodes()) cluster_.scan(node);
  }

  std::vector<Cluster::Node>& nodes() { return cluster_.nodes(); }
  Cluster::Node& last() { return nodes().back(); }

  static void make(const Cluster::Node& node, int number, const std::string& file = "file") {
    const fs::path directory = node.drives[0] / "bucket" / ("d" + std::to_string(number));
    fs::create_directories(directory);
    std::ofstream(directory / file) << "12345";
  }

  // Changes a directory of each node, and tells one.
  void change_and_tell(const Cluster::Node& told, int number) {
    for (const auto& node : nodes()) make(node, number, "new" + std::to_string(++changes_));
    const auto marked = cluster_.spoor(told, {"mark", "bucket/d" + std::to_string(number)});
    ASSERT_EQ(marked.code, 0) << marked.err;
  }

  json retire(Cluster::Node& node) {
    const auto done = cluster_.spoor(node, {"members", "retire", node.name});
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }

  // As an operator does: it is stopped, and the others list it no longer.
  void remove(Cluster::Node& gone) {
    EXPECT_EQ(cluster_.stop(gone), 0);
    const std::string url = "unix:" + cluster_.socket_of(gone).native();
    for (auto& node : nodes()) {
      if (node.name == gone.name || node.name == down_) continue;
      cluster_.configure(node, [&](json& config) {
        json& listed = config["peers"]["static"];
        for (std::size_t at = listed.size(); at-- > 0;) {
          if (listed[at] == url) listed.erase(at);
        }
      });
    }
  }

  // A scan that reads the root, the bucket and one directory, at most, and finds the truth.
  void expect_cheap_and_true(const Cluster::Node& node, int changed = 1) {
    const json scan = cluster_.scan(node);
    EXPECT_EQ(scan["mode"], "incremental") << node.name << scan;
    EXPECT_LE(scan["dirs_walked"].get<int>(), 2 + changed) << scan;
    cluster_.expect_truth(node);
  }

  Cluster cluster_{4, 1};
  int changes_ = 0;
  std::string down_;  // the name of a node that is not running
};

TEST_F(RetireTest, RetiredAndGone_OthersReadWhatChanged) {
  change_and_tell(last(), 7);
  EXPECT_THAT(retire(last()).get<std::string>(), HasSubstr("'n3' has retired: node 'n"));
  const auto refused = cluster_.spoor(last(), {"mark", "--timeout", "3", "bucket/d8"});
  EXPECT_NE(refused.code, 0);
  EXPECT_THAT(refused.err, HasSubstr("has retired"));
  remove(last());
  for (std::size_t at = 0; at < 3; ++at) expect_cheap_and_true(nodes()[at]);
  for (std::size_t at = 0; at < 3; ++at) EXPECT_EQ(cluster_.scan(nodes()[at])["dirs_walked"], 0);
}

// The adopted marks were acknowledged: they survive a crash of the member that has them.
TEST_F(RetireTest, AdoptingMemberKilled_MarksAreThere) {
  change_and_tell(last(), 7);
  retire(last());
  for (std::size_t at = 0; at < 3; ++at) {
    cluster_.kill_hard(nodes()[at]);
    cluster_.start(nodes()[at]);
  }
  remove(last());
  for (std::size_t at = 0; at < 3; ++at) expect_cheap_and_true(nodes()[at]);
}

TEST_F(RetireTest, Restart_BeginsANewMemberWithoutAFullWalk) {
  change_and_tell(last(), 7);
  retire(last());
  EXPECT_EQ(cluster_.stop(last()), 0);
  cluster_.start(last());
  change_and_tell(last(), 8);
  for (const auto& node : nodes()) expect_cheap_and_true(node, 2);
}

TEST_F(RetireTest, OneAfterAnother_TheLastNodeHasAllMarks) {
  change_and_tell(last(), 7);
  for (std::size_t at = 3; at > 0; --at) {
    retire(nodes()[at]);
    remove(nodes()[at]);
    nodes().pop_back();
  }
  expect_cheap_and_true(nodes()[0]);
  const auto alone = cluster_.spoor(nodes()[0], {"members", "retire"});
  EXPECT_EQ(alone.code, 1);
  EXPECT_THAT(alone.err, HasSubstr("there is no other member"));
  EXPECT_EQ(cluster_.spoor(nodes()[0], {"mark", "bucket/d1"}).code, 0) << "it is a member as before";
}

TEST_F(RetireTest, NodeThatWasDown_WalksOnce) {
  // The others read the node meanwhile, so what is handed on begins later than the cursor of this one.
  change_and_tell(last(), 7);
  down_ = "n1";
  EXPECT_EQ(cluster_.stop(nodes()[1]), 0);
  for (const std::size_t at : {0U, 2U, 3U}) cluster_.scan(nodes()[at], 3);
  const auto done = cluster_.spoor(last(), {"members", "retire"});
  EXPECT_EQ(done.code, 0);
  EXPECT_THAT(done.err, HasSubstr("its next scan may walk everything"));
  remove(last());
  cluster_.start(nodes()[1]);
  cluster_.configure(nodes()[1], [](json& config) { config["peers"]["static"].erase(2); });
  const json full = cluster_.scan(nodes()[1]);
  EXPECT_EQ(full["mode"], "full");
  EXPECT_THAT(full["reason"].get<std::string>(), HasSubstr("'n3' has retired"));
  cluster_.expect_truth(nodes()[1]);
  for (const std::size_t at : {0U, 1U, 2U}) EXPECT_EQ(cluster_.scan(nodes()[at])["mode"], "incremental");
}

TEST_F(RetireTest, WrongName_RetiresNothing) {
  const auto wrong = cluster_.spoor(last(), {"members", "retire", "n1"});
  EXPECT_EQ(wrong.code, 1);
  EXPECT_THAT(wrong.err, HasSubstr("this is node 'n3'"));
  EXPECT_EQ(cluster_.spoor(last(), {"mark", "bucket/d1"}).code, 0);
}

}  // namespace
}  // namespace spoor::cluster
