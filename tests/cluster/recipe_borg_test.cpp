// The recipe for borg, with real scans and the program that it is for.
#include <gmock/gmock.h>

#include <filesystem>
#include <sstream>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class BorgTest : public OneNodeTest {
 protected:
  void SetUp() override {
    const auto made = borg({"init", "--encryption", "repokey"});
    ASSERT_EQ(made.code, 0) << made.err;
  }

  support::CommandResult borg(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"env"};
    command.insert(command.end(), environment_.begin(), environment_.end());
    command.emplace_back("borg");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(command);
  }

  support::CommandResult back_up() {
    return recipe("spoor-borg", {"backup", drive().native()}, environment_);
  }

  support::CommandResult restore() {
    return recipe("spoor-borg", {"restore", (work_ / "restored").native()}, environment_);
  }

  void expect_restored() {
    const auto restored = restore();
    EXPECT_EQ(restored.code, 0) << restored.err;
    EXPECT_EQ(support::run_command({"diff", "-r", "--exclude=.spoor", drive(), work_ / "restored"}).out, "");
    fs::remove_all(work_ / "restored");
  }

  support::TempDirectory work_;
  const std::vector<std::string> environment_{"BORG_REPO=" + (work_ / "repository").native(),
                                              "BORG_BASE_DIR=" + (work_ / "borg").native(),
                                              "BORG_PASSCOMMAND=echo secret"};
};

TEST_F(BorgTest, DirectoryMovedAwayAndBack_IsRestored) {
  change("moving/deep/file");
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  change("moving/deep/new");
  change("top");
  cluster_.scan(node());
  fs::rename(drive() / "moving", drive() / "elsewhere");
  EXPECT_EQ(back_up().code, 0);
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  expect_restored();
}

TEST_F(BorgTest, BackupFailed_NextOneCoversTheSameChanges) {
  change("a/file");
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  change("b/file");
  cluster_.scan(node());
  fs::rename(work_ / "repository", work_ / "away");
  const auto failed = back_up();
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("spoor-borg: borg list failed with code 2"));
  fs::rename(work_ / "away", work_ / "repository");
  EXPECT_EQ(back_up().code, 0);
  expect_restored();
}

TEST_F(BorgTest, ArchiveDeleted_RestoreFailsAndNextBackupIsFull) {
  for (const char* path : {"a/file", "b/file", "c/file"}) {
    change(path);
    cluster_.scan(node());
    EXPECT_EQ(back_up().code, 0);
  }
  std::istringstream list(borg({"list", "--format", "{archive} {comment}{NL}"}).out);
  std::vector<std::string> archives;
  for (std::string name, comment; list >> name && std::getline(list, comment);) {
    archives.push_back(name);
    EXPECT_THAT(comment, HasSubstr(R"("tags": ["borg", )"));
  }
  ASSERT_EQ(archives.size(), 6U) << "two for each layer";
  ASSERT_EQ(borg({"delete", "::" + archives[2]}).code, 0);
  const auto refused = restore();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("keep all snapshots since the last full one\n"));
  EXPECT_FALSE(fs::exists(work_ / "restored")) << "nothing was written";
  const auto full = back_up();
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_THAT(full.out, HasSubstr("backs up all of"));
  expect_restored();
}

// borg does not read such a name from a list.
TEST_F(BorgTest, NameWithCarriageReturn_IsInASecondArchive) {
  change("a/file");
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  change("a/file");
  change("a/carriage\rreturn");
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  expect_restored();
  ASSERT_EQ(borg({"delete", "--glob-archives", "*.2"}).code, 0);
  const auto refused = restore();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("the files of layer 2 are missing"));
}

TEST_F(BorgTest, ArchivesOfAnotherProgram_AreIgnored) {
  change("a/file");
  ASSERT_EQ(borg({"create", "::by hand", drive().native()}).code, 0);
  ASSERT_EQ(borg({"create", "--comment", "[1]", "::by another", drive().native()}).code, 0);
  cluster_.scan(node());
  EXPECT_EQ(back_up().code, 0);
  expect_restored();
}

}  // namespace
}  // namespace spoor::cluster
