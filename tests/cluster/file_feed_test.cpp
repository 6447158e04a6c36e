// scan.file_feed with real scans, and rsync that copies what `spoor changes --files` lists; over random
// changes in recipes/rounds_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> pieces(const std::string& text, char end) {
  std::vector<std::string> found;
  std::istringstream in(text);
  for (std::string piece; std::getline(in, piece, end);) found.push_back(piece);
  std::ranges::sort(found);
  return found;
}

class FileFeedTest : public OneNodeTest {
 protected:
  FileFeedTest() { set_file_feed(true); }

  void set_file_feed(bool on) {
    const fs::path file = cluster_.config_of(node());
    auto config = nlohmann::json::parse(std::ifstream(file));
    config["scan"]["file_feed"] = on;
    std::ofstream(file) << config;
  }

  std::vector<std::string> listed(std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), {"--consumer", "copy", "--files", "-0"});
    const auto result = changes(std::move(arguments));
    EXPECT_EQ(result.code, 0) << result.err;
    return pieces(result.out, '\0');
  }

  // Copies everything; what comes after that is read from the feed.
  void copy_everything() {
    EXPECT_EQ(changes({"--consumer", "copy", "--files", "--commit"}).code, 4);
    const auto copied = support::run_command(
        {"rsync", "-a", "--exclude=/.spoor", drive().native() + "/", copy_.path().native() + "/"});
    EXPECT_EQ(copied.code, 0) << copied.err;
  }

  // Deletes what is listed as deleted, then copies the files that are listed. Gives those that rsync copied.
  std::vector<std::string> follow() {
    for (const std::string& gone : listed({"--deleted"})) fs::remove_all(copy_ / gone);
    const auto list = changes({"--consumer", "copy", "--files", "-0"}).out;
    const auto copied = support::run_command({"rsync", "-a", "--from0", "--files-from=-", "--out-format=%n",
                                              drive().native() + "/", copy_.path().native() + "/"},
                                             list);
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(changes({"--consumer", "copy", "--files", "--commit", "-0"}).code, 0);
    auto files = pieces(copied.out, '\n');
    std::erase_if(files, [](const std::string& name) { return name.ends_with('/'); });
    return files;
  }

  // Names, sizes, times and targets of all but the directories.
  static std::vector<std::string> files_in(const fs::path& tree) {
    const auto found = support::run_command({"find", tree.native(), "-name", ".spoor", "-prune", "-o", "!",
                                             "-type", "d", "-printf", "%P %y %s %T@ %l\\0"});
    EXPECT_EQ(found.code, 0) << found.err;
    return pieces(found.out, '\0');
  }

  support::TempDirectory copy_;
};

TEST_F(FileFeedTest, RsyncFromFileFeed_CopiesOnlyNewAndChangedFiles) {
  for (const char* path : {"top", "bucket/a/changed", "bucket/a/same", "bucket/a/gone", "bucket/b/file"})
    change(path);
  scan_settled();
  copy_everything();
  EXPECT_THAT(follow(), IsEmpty());
  for (const char* path : {"bucket/a/changed", "bucket/a/new", "bucket/c/d/file", "-x", "#y"}) change(path);
  fs::remove(drive() / "bucket/a/gone");
  fs::remove_all(drive() / "bucket/b");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/b", "bucket/a"}).code, 0);
  scan_settled();
  EXPECT_THAT(listed({}), ElementsAre("-x", "./#y", "bucket/a/changed", "bucket/a/new", "bucket/c/d/file"));
  EXPECT_THAT(listed({"--deleted"}), ElementsAre("bucket/a/gone", "bucket/b/"));
  EXPECT_EQ(changes({"--since", "1", "--until", "2", "--files", "--json"}).out,
            R"({"scan":2,"path":"","change":"changed"}
{"scan":2,"path":"#y","change":"new","type":"file"}
{"scan":2,"path":"-x","change":"new","type":"file"}
{"scan":2,"path":"bucket","change":"changed"}
{"scan":2,"path":"bucket/a","change":"changed"}
{"scan":2,"path":"bucket/a/changed","change":"changed","type":"file"}
{"scan":2,"path":"bucket/a/gone","change":"deleted","type":"file"}
{"scan":2,"path":"bucket/a/new","change":"new","type":"file"}
{"scan":2,"path":"bucket/b","change":"deleted"}
{"scan":2,"path":"bucket/c","change":"new"}
{"scan":2,"path":"bucket/c/d","change":"new"}
{"scan":2,"path":"bucket/c/d/file","change":"new","type":"file"}
)");
  EXPECT_THAT(follow(), ElementsAre("#y", "-x", "bucket/a/changed", "bucket/a/new", "bucket/c/d/file"));
  EXPECT_EQ(files_in(copy_.path()), files_in(drive()));
  EXPECT_FALSE(fs::exists(copy_ / "bucket/b"));
}

TEST_F(FileFeedTest, FileFeed_SwitchedOn_CausesAFullScan) {
  set_file_feed(false);
  change("bucket/file");
  cluster_.scan(node());
  const auto refused = changes({"--since", "1", "--files"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, testing::HasSubstr("set scan.file_feed to true"));
  EXPECT_EQ(refused.out, "");
  set_file_feed(true);
  EXPECT_EQ(changes({"--since", "1", "--files"}).code, 4) << "no scan has kept any yet";
  const auto scan = cluster_.scan(node());
  EXPECT_EQ(scan["mode"], "full");
  EXPECT_EQ(scan["reason"], "scan.file_feed was switched on");
  EXPECT_EQ(changes({"--since", "1", "--files"}).code, 4);
  EXPECT_EQ(changes({"--since", "2", "--files"}).code, 0);
  EXPECT_EQ(cluster_.scan(node())["mode"], "incremental");
  set_file_feed(false);
  EXPECT_EQ(cluster_.scan(node())["mode"], "incremental");
  set_file_feed(true);
  EXPECT_EQ(changes({"--since", "2", "--files"}).code, 4) << "they were forgotten";
}

}  // namespace
}  // namespace spoor::cluster
