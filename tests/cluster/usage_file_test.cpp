// usage.json, as `spoor scan` leaves it.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

using nlohmann::json;

class UsageFileTest : public OneNodeTest {
 protected:
  std::filesystem::path file() { return cluster_.data_dir_of(node()) / "usage.json"; }
  json usage() { return json::parse(std::ifstream(file())); }
};

TEST_F(UsageFileTest, UsageFile_AfterEachScan_HoldsTheTotals) {
  change("b/deep/x");
  change("a/file");
  cluster_.scan(node());
  const json first = usage();
  json expected = json::parse(cluster_.spoor(node(), {"usage", "--json"}).out);
  expected["version"] = 1;
  expected["scan"] = 1;
  EXPECT_EQ(first, expected);
  EXPECT_EQ(first["complete"], true);
  EXPECT_EQ(first["files"], 2);
  ASSERT_EQ(first["children"].size(), 2U);
  EXPECT_EQ(first["children"][0]["path"], "b") << "the largest first";
  EXPECT_EQ(first["children"][0]["dirs"], 1);
  change("a/more");
  EXPECT_EQ(usage(), first) << "nobody scanned";
  cluster_.spoor(node(), {"scan", "--dry-run"});
  EXPECT_EQ(usage(), first) << "a dry run leaves nothing";
  cluster_.scan(node());
  EXPECT_EQ(usage()["scan"], 2);
  EXPECT_EQ(usage()["files"], 3);
}

TEST_F(UsageFileTest, UsageFile_CannotBeWritten_IsANoteInTheScanReport) {
  cluster_.scan(node());
  std::filesystem::remove(file());
  std::filesystem::create_directories(file() / "in the way");
  change("a/file");
  const json scan = cluster_.scan(node());
  EXPECT_EQ(scan["dirs_new"], 1);
  ASSERT_TRUE(scan["note"].is_string()) << scan;
  EXPECT_NE(scan["note"].get<std::string>().find("usage.json"), std::string::npos) << scan["note"];
  std::filesystem::remove_all(file());
  EXPECT_EQ(cluster_.scan(node())["note"], nullptr);
  EXPECT_EQ(usage()["files"], 1);
}

}  // namespace
}  // namespace spoor::cluster
