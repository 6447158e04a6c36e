// What the real rsync prints, marked.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/cluster/one_node.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class RsyncMarksTest : public OneNodeTest, public testing::WithParamInterface<const char*> {
 protected:
  // The locale of the parameter, compiled where the machine has none of that name.
  std::vector<std::string> environment() const {
    const std::string name = GetParam();
    if (name != "de_DE.UTF-8") return {"LC_ALL=" + name};
    const fs::path compiled = locales_ / name;
    if (!fs::exists(compiled)) {
      const auto made = support::run_command(
          {"localedef", "-i", "de_DE", "-f", "UTF-8", "--no-archive", compiled.native()});
      EXPECT_TRUE(fs::exists(compiled)) << made.err;
    }
    return {"LC_ALL=" + name, "LOCPATH=" + locales_.path().native()};
  }

  // What it prints of bringing bucket/ up to the source.
  std::string synchronise() {
    std::vector<std::string> command{"env"};
    for (const std::string& each : environment()) command.push_back(each);
    command.insert(command.end(), {"rsync", "-aH", "--delete", "--out-format=%i %n",
                                   source_.path().native() + "/", (drive() / "bucket").native() + "/"});
    const auto done = support::run_command(command);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  }

  support::TempDirectory source_;
  support::TempDirectory locales_;
};

TEST_P(RsyncMarksTest, EachLine_IsTheMarkOfWhatChanged) {
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
    EXPECT_EQ(cluster_.usage(node()), support::walk_independently({drive()}));
  }
}

INSTANTIATE_TEST_SUITE_P(Locales, RsyncMarksTest, testing::Values("C", "C.UTF-8", "de_DE.UTF-8"),
                         [](const auto& locale) {
                           return std::string(locale.param).substr(0, 1) + std::to_string(locale.index);
                         });

using RsyncLinesTest = OneNodeTest;

TEST_F(RsyncLinesTest, LinesOfRsyncThatAreNone_AreReportedAndTheOthersMarked) {
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
