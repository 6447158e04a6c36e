// `spoor scan --rebuild`, with a daemon and without one.
#include <filesystem>
#include <fstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class RebuildCommandTest : public OneNodeTest {
 protected:
  fs::path in_data_dir(const char* name) { return cluster_.data_dir_of(node()) / name; }

  void expect_usage_is_shown() {
    const auto usage = cluster_.spoor(node(), {"usage", "--json"});
    EXPECT_EQ(usage.code, 0) << usage.err;
    EXPECT_NE(usage.out.find("bucket"), std::string::npos) << usage.out;
  }
};

TEST_F(RebuildCommandTest, ScanRebuild_DaemonDown_ChangesNothing) {
  change("bucket/a/file");
  cluster_.scan(node());
  cluster_.stop(node());
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(cluster_.spoor(node(), {"scan", "--rebuild"}).code, 1);
    expect_usage_is_shown();
    EXPECT_FALSE(fs::exists(in_data_dir("scan.db.corrupt")));
    EXPECT_FALSE(fs::exists(in_data_dir("scan.db.new")));
  }
  cluster_.start(node());
  EXPECT_EQ(cluster_.scan(node(), 0)["scan"], 2);
  const auto rebuilt = cluster_.scan(node(), 0, {"--rebuild"});
  EXPECT_EQ(rebuilt["scan"], 1);
  EXPECT_EQ(rebuilt["mode"], "full");
  EXPECT_NE(rebuilt["reason"].get<std::string>().find("a rebuild of the scan database was asked for"),
            std::string::npos)
      << rebuilt["reason"];
  EXPECT_TRUE(fs::exists(in_data_dir("scan.db.corrupt")));
  EXPECT_FALSE(fs::exists(in_data_dir("scan.db.new")));
  expect_usage_is_shown();
  EXPECT_EQ(cluster_.scan(node())["mode"], "incremental");
}

TEST_F(RebuildCommandTest, DamagedDatabase_DaemonDown_IsNotSetAside) {
  change("bucket/a/file");
  cluster_.scan(node());
  cluster_.stop(node());
  fs::remove(in_data_dir("scan.db-wal"));  // it has the page that is cut off
  fs::resize_file(in_data_dir("scan.db"), fs::file_size(in_data_dir("scan.db")) - 4096);
  const auto size = fs::file_size(in_data_dir("scan.db"));
  EXPECT_EQ(cluster_.spoor(node(), {"scan"}).code, 1);
  EXPECT_EQ(fs::file_size(in_data_dir("scan.db")), size);
  EXPECT_FALSE(fs::exists(in_data_dir("scan.db.corrupt")));
  cluster_.start(node());
  EXPECT_EQ(cluster_.scan(node())["mode"], "full");
  EXPECT_EQ(fs::file_size(in_data_dir("scan.db.corrupt")), size);
  expect_usage_is_shown();
}

}  // namespace
}  // namespace spoor::cluster
