// The recipe for node_exporter's textfiles, with real scans.
#include <gmock/gmock.h>

#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

using NodeExporterTest = OneNodeTest;

TEST_F(NodeExporterTest, TextfileRecipe_WritesLastScanAndTotals) {
  const support::TempDirectory work;
  const fs::path file = work / "spoor.prom";
  EXPECT_NE(recipe("node-exporter-textfile", {file.native()}).code, 0) << "there was no scan yet";
  EXPECT_TRUE(fs::is_empty(work.path())) << "and nothing is left behind";
  change("bucket/a/file");
  change("bucket/quiet/file");
  scan_settled();
  std::ofstream(drive() / "bucket/a/file") << "12345";
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "file", "bucket/a/file"}).code, 0);
  scan_settled();
  const auto written = recipe("node-exporter-textfile", {file.native()});
  ASSERT_EQ(written.code, 0) << written.err;
  const std::string text = content(file);
  for (const char* line :
       {"# HELP spoor_last_scan_number Number of the last scan.", "# TYPE spoor_last_scan_number gauge",
        "spoor_last_scan_number 2", "spoor_last_scan_full 0", "spoor_last_scan_partial 0",
        "spoor_last_scan_errors 0", "# TYPE spoor_last_scan_directories gauge",
        "spoor_last_scan_directories{kind=\"walked\"} 3", "spoor_last_scan_directories{kind=\"skipped\"} 1",
        "spoor_last_scan_directories{kind=\"changed\"} 1", "spoor_last_scan_directories{kind=\"new\"} 0",
        "spoor_last_scan_directories{kind=\"deleted\"} 0", "spoor_usage_files 2", "spoor_usage_directories 3",
        "spoor_usage_bytes 22", "spoor_usage_complete 1"}) {
    EXPECT_THAT('\n' + text, HasSubstr('\n' + std::string(line) + '\n'));
  }
  const json usage = json::parse(cluster_.spoor(node(), {"usage", "--json"}).out);
  EXPECT_THAT(text, HasSubstr("spoor_usage_allocated_bytes " + usage["allocated"].dump() + '\n'));
  std::tm as_of{};
  ASSERT_NE(::strptime(usage["as_of"].get<std::string>().c_str(), "%Y-%m-%dT%H:%M:%SZ", &as_of), nullptr);
  EXPECT_THAT(text,
              HasSubstr("spoor_usage_as_of_timestamp_seconds " + std::to_string(::timegm(&as_of)) + '\n'));
  for (const char* name :
       {"spoor_last_scan_finished_timestamp_seconds ", "spoor_last_scan_duration_seconds "}) {
    EXPECT_THAT(text, HasSubstr('\n' + std::string(name)));
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(work.path()), fs::directory_iterator()), 1);
  EXPECT_EQ(fs::status(file).permissions(), fs::perms(0644));
}

}  // namespace
}  // namespace spoor::cluster
