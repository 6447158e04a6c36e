// `spoor changes` after real scans.
#include <gmock/gmock.h>

#include <filesystem>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

using ChangesTest = OneNodeTest;

TEST_F(ChangesTest, Consumer_Committed_ReadsEachChangeOnce) {
  change("bucket/a/file");
  scan_settled();
  const auto unknown = changes({"--consumer", "c"});
  EXPECT_EQ(unknown.code, 4);
  EXPECT_EQ(unknown.out, "");
  EXPECT_EQ(changes({"--consumer", "c", "--commit"}).code, 4);
  EXPECT_EQ(changes({"--consumer", "c"}).code, 0) << "it reads on from here";
  change("bucket/a/more");
  scan_settled();
  for (int times = 0; times < 2; ++times) EXPECT_EQ(changes({"--consumer", "c"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--consumer", "c", "--commit"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--consumer", "c"}).out, "");
  EXPECT_EQ(changes({"--since", "1"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--latest"}).out, "2\n");
  for (const char* const file : {"bucket/b", "bucket/c/file"}) {
    change(file);
    scan_settled();
  }
  EXPECT_EQ(changes({"--consumer", "c", "--until", "3", "--commit"}).out, "bucket/\n");
  EXPECT_EQ(changes({"--consumer", "c"}).out, "bucket/\nbucket/c/\n") << "of scan 4";
  EXPECT_EQ(changes({"--consumer", "c", "--forget"}).code, 0);
  EXPECT_EQ(changes({"--consumer", "c"}).code, 4);
}

TEST_F(ChangesTest, Consumers_AreListedWithTheirLag) {
  change("bucket/a/file");
  cluster_.scan(node());
  EXPECT_EQ(changes({"--consumers"}).out, "no consumer has committed yet\n");
  EXPECT_EQ(changes({"--consumer", "late", "--commit"}).code, 4);
  for (int i = 0; i < 2; ++i) {
    change("bucket/a/" + std::to_string(i));
    cluster_.scan(node());
  }
  EXPECT_EQ(changes({"--consumer", "in time", "--commit"}).code, 4);
  auto listed = nlohmann::json::parse(changes({"--consumers", "--json"}).out);
  EXPECT_EQ(listed["latest"], 3);
  ASSERT_EQ(listed["consumers"].size(), 2U);
  EXPECT_EQ(listed["consumers"][0]["consumer"], "in time");
  EXPECT_EQ(listed["consumers"][0]["behind"], 0);
  EXPECT_EQ(listed["consumers"][1]["scan"], 1);
  EXPECT_EQ(listed["consumers"][1]["behind"], 2);
  ASSERT_EQ(cluster_.spoor(node(), {"scan", "--rebuild"}).code, 0);
  listed = nlohmann::json::parse(changes({"--consumers", "--json"}).out);
  EXPECT_TRUE(listed["consumers"][1]["behind"].is_null()) << listed;
  EXPECT_NE(changes({"--consumers"}).out.find("starts over"), std::string::npos);
}

TEST_F(ChangesTest, PathWithNewline_NeedsNulOrJsonOutput) {
  change("bucket/a/file");
  cluster_.scan(node());
  change("bucket/line\nbreak/file");
  change("top");
  fs::remove_all(drive() / "bucket" / "a");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, std::string("bucket/line\nbreak/file")).code, 0);
  cluster_.scan(node());
  const auto refused = changes({"--since", "1"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("use -0"), std::string::npos) << refused.err;
  EXPECT_EQ(changes({"--since", "1", "-0"}).out, std::string("./\0bucket/\0bucket/line\nbreak/\0", 30));
  EXPECT_EQ(changes({"--since", "1", "--deleted"}).out, "bucket/a/\n");
  EXPECT_EQ(changes({"--since", "1", "--json"}).out,
            "{\"scan\":2,\"path\":\"\",\"change\":\"changed\"}\n"
            "{\"scan\":2,\"path\":\"bucket\",\"change\":\"changed\"}\n"
            "{\"scan\":2,\"path\":\"bucket/a\",\"change\":\"deleted\"}\n"
            "{\"scan\":2,\"path\":\"bucket/line\\nbreak\",\"change\":\"new\"}\n");
}

TEST_F(ChangesTest, Everything_ListsWhatTheLastScanFound) {
  change("bucket/a/file");
  cluster_.scan(node());
  change("bucket/b/file");
  fs::remove_all(drive() / "bucket" / "a");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/a"}).code, 0);
  cluster_.scan(node());
  fs::create_directory(drive() / "later");
  const std::string all = "bucket/\nbucket/b/\n";
  EXPECT_EQ(changes({"--everything"}).out, all);
  EXPECT_EQ(changes({"--everything", "--drive", drive().native()}).out, all);
  EXPECT_EQ(changes({"--everything", "--deleted"}).out, "");
}

TEST_F(ChangesTest, WrongArguments_AreRefused) {
  for (const std::vector<std::string>& bad :
       std::vector<std::vector<std::string>>{{"--since", "1", "--consumer", "c"},
                                             {"--since", "1", "--after", "1"},
                                             {"--since", "1", "--everything"},
                                             {"--everything", "--commit"},
                                             {"--since", "1", "--commit"},
                                             {"--since", "x"}}) {
    EXPECT_EQ(changes(bad).code, 2);
  }
  EXPECT_EQ(changes({"--since", "1"}).code, 1) << "there was no scan yet";
}

}  // namespace
}  // namespace spoor::cluster
