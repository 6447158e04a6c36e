// What the real rsync prints, and what find prints of the current directory, marked.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cluster/one_node.h"
#include "tests/support/locales.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class RsyncMarksTest : public OneNodeTest, public testing::WithParamInterface<const char*> {
 protected:
  // What it prints of bringing bucket/ up to the source.
  std::string synchronise() {
    std::vector<std::string> command{"env"};
    for (const std::string& each : locales_.environment(GetParam())) command.push_back(each);
    command.insert(command.end(), {"rsync", "-aH", "--delete", "--out-format=%i %n",
                                   source_.path().native() + "/", (drive() / "bucket").native() + "/"});
    const auto done = support::run_command(command);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }

  support::TempDirectory source_;
  support::Locales locales_;
};

TEST_P(RsyncMarksTest, RsyncOutput_EachLine_MarksWhatChanged) {
  SPOOR_RANDOM(random);
  support::TreeWriter writer(random, source_.path(), support::TreeOddities::all);
  writer.fill(20);
  fs::create_directory(drive() / "bucket");
  synchronise();
  cluster_.scan(node());
  for (int round = 0; round < 20 && !HasFailure(); ++round) {
    for (std::uint64_t i = random.below(8); i > 0; --i) writer.change();
    const auto marked =
        cluster_.spoor(node(), {"mark", "--from", "rsync", "--prefix", "bucket"}, synchronise());
    ASSERT_EQ(marked.code, 0) << marked.err;
    cluster_.scan(node());
    cluster_.expect_truth(node());
  }
}

INSTANTIATE_TEST_SUITE_P(Locales, RsyncMarksTest, support::Locales::all(), support::Locales::test_name);

using MarksFromHereTest = OneNodeTest;

// "find ." in a directory of a drive prints such paths: what is there must not be missed.
TEST_F(MarksFromHereTest, PathFromHere_MarksThePlaceAndTheLogicalPath) {
  for (const char* const directory : {"photos/s2", "s2"}) fs::create_directories(drive() / directory);
  cluster_.scan(node());
  const auto mark_in = [&](const fs::path& here, const std::string& path) {
    const auto marked = support::run_command({"sh", "-c", "cd \"$0\" && exec \"$@\"", here, SPOOR, "--config",
                                              cluster_.config_of(node()), "mark", path});
    EXPECT_EQ(marked.code, 0) << marked.err;
    cluster_.scan(node());
    SCOPED_TRACE(here.native() + ' ' + path);
    cluster_.expect_truth(node());
  };
  const auto change = [&](const std::string& path) {
    std::ofstream(drive() / path, std::ios::app) << "more";
  };
  change("photos/s2/file");
  mark_in(drive() / "photos", "./s2");
  change("s2/file");
  mark_in(drive() / "photos", "./s2");
  change("s2/file2");
  mark_in(drive() / "photos", "../s2");
  change("s2/file3");
  mark_in("/", "./s2");
}

using RsyncLinesTest = OneNodeTest;

TEST_F(RsyncLinesTest, InvalidRsyncLine_IsReportedAndTheOthersAreMarked) {
  const auto marked =
      cluster_.spoor(node(), {"mark", "--from", "rsync", "--prefix", "bucket"},
                     "sending incremental file list\n>f+++++++++ a/file\n*deleting   b/cut off");
  EXPECT_EQ(marked.code, 1);
  EXPECT_NE(marked.err.find("'sending incremental file list' is no whole line"), std::string::npos)
      << marked.err;
  EXPECT_NE(marked.err.find("'*deleting   b/cut off' is no whole line"), std::string::npos) << marked.err;
  EXPECT_EQ(marked.out, "1 marked, 0 ignored, cycle 1\n");
}

}  // namespace
}  // namespace spoor::cluster
