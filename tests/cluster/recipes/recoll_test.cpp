// The recipe for Recoll, with real scans and the program that it is for.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/cluster/one_node.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// With the names of files, and without.
class RecollTest : public OneNodeTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { configure("index"); }

  // A configuration of Recoll, and its index, in a directory of this name.
  void configure(const std::string& name) {
    fs::create_directory(work_ / name);
    std::ofstream(work_ / name / "recoll.conf")
        << "topdirs = " << drive().native() << '\n'
        << "usesystemfilecommand = 0\n"  // a shell script for each file
        << "skippedPaths = " << (drive() / ".spoor").native() << '\n';
  }

  support::CommandResult recoll(const std::string& name, std::vector<std::string> command) {
    command.insert(command.begin(), {"env", "RECOLL_CONFDIR=" + (work_ / name).native()});
    return support::run_command(command);
  }

  // What is in an index: the path, size and time of each file, encoded.
  std::set<std::string> indexed(const std::string& name) {
    std::istringstream lines(recoll(name, {"recollq", "-n", "0", "-F", "url fbytes mtime", "-q",
                                           "dir:\"" + drive().native() + '"'})
                                 .out);
    std::set<std::string> found;
    std::string line;
    for (int header = 0; header < 2; ++header) std::getline(lines, line);
    while (std::getline(lines, line)) found.insert(line);
    return found;
  }

  std::string find(const std::string& word) { return recoll("index", {"recollq", "-b", word}).out; }

  void scan() { cluster_.scan(node(), 0, {"--set", setting_}); }

  support::CommandResult index() {
    return recipe("spoor-index", {drive().native()},
                  {"RECOLL_CONFDIR=" + (work_ / "index").native(), "PATH=" + path_}, {"--set", setting_});
  }

  support::TempDirectory work_;
  std::string path_ = std::getenv("PATH");
  const std::string setting_ = std::string("scan.file_feed=") + GetParam();
};

TEST_P(RecollTest, EveryRound_IndexEqualsANewOne) {
  SPOOR_RANDOM(random);
  support::TreeWriter writer(random, drive());
  writer.fill(20);
  for (int round = 0; round < 3 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (std::uint64_t count = 1 + random.below(6); round > 0 && count > 0; --count) writer.change();
    const std::string changed = writer.take_changed();
    if (!changed.empty()) {
      ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, changed).code, 0);
    }
    scan();
    const auto done = index();
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out.find("indexes all") != std::string::npos, round == 0) << done.out;
    const std::string fresh = "fresh" + std::to_string(round);
    configure(fresh);
    EXPECT_EQ(recoll(fresh, {"recollindex"}).code, 0);
    EXPECT_EQ(indexed("index"), indexed(fresh));
    if (round == 0) {
      EXPECT_GT(indexed("index").size(), 1U);  // later ones may delete everything
    }
  }
}

TEST_P(RecollTest, WordsOfChangedFiles_AreFound) {
  const std::string odd = "a/ [x]*? \"\nfile \xff.txt";
  change(odd);
  change("a/deleted.txt");
  change("a\"[b/c]\"/deleted.txt");
  scan();
  EXPECT_EQ(index().code, 0);
  std::ofstream(drive() / odd) << "zebra";
  fs::remove(drive() / "a/deleted.txt");
  fs::remove_all(drive() / "a\"[b");
  for (const std::string& each : {odd, std::string("a/deleted.txt"), std::string("a\"[b")})
    ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, each).code, 0);
  scan();
  const auto done = index();
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_THAT(find("zebra"), HasSubstr("file://" + (drive() / "a/ [x]*? \"").native()));
  EXPECT_EQ(find("deleted"), "") << "its words and its name";
}

TEST_P(RecollTest, DirectoryMovedAwayWhileAllIsIndexed_IsIndexedByTheNextRun) {
  change("moving/deep/zebra.txt");
  scan();
  const fs::path program = work_ / "bin/recollindex";
  fs::create_directory(work_ / "bin");
  std::ofstream(program) << "#!/bin/sh\nmv " << drive() / "moving" << " " << work_ / "away"
                         << "\nPATH=${PATH#*:}\nexec recollindex \"$@\"\n";
  fs::permissions(program, fs::perms(0755));
  path_ = (work_ / "bin").native() + ':' + path_;
  EXPECT_EQ(index().code, 0);
  EXPECT_EQ(find("zebra"), "");
  fs::remove(program);
  fs::rename(work_ / "away", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving"}).code, 0);
  scan();
  EXPECT_EQ(index().code, 0);
  EXPECT_THAT(find("zebra"), HasSubstr("moving/deep/zebra.txt"));
}

INSTANTIATE_TEST_SUITE_P(FileFeed, RecollTest, testing::Values("true", "false"));

}  // namespace
}  // namespace spoor::cluster
