// The recipes run as root, over a drive on which users change what they like, next to a node.data_dir that
// belongs to a daemon in a network.
#include <gmock/gmock.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/cluster/recipes/programs.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr unsigned nobody = 65534;

class HostileTest : public RecipeTest {
 protected:
  void SetUp() override {
    if (auto why = faults::why_no_mounts(); !why.empty()) GTEST_SKIP() << why;
    RecipeTest::SetUp();
    fs::create_directories(work_ / "outside/deep");
    std::ofstream(work_ / "outside/deep/secret") << "root's";
  }

  support::CommandResult run_unconfined(const std::string& consumer = "copy") {
    auto command = run_command(consumer);
    command.insert(command.begin() + 1, "SPOOR_UNCONFINED=1");
    return support::run_command(command);
  }

  bool has_secret(const fs::path& top) {
    return support::run_command({"grep", "-r", "-q", "root's", top.native()}).code == 0;
  }

  fs::path old_state() { return cluster_.data_dir_of(node()) / "recipe-copy.left"; }

  fs::path state() {
    for (const auto& each : fs::directory_iterator(state_of_recipes()))
      if (each.path().extension() == ".left") return each.path();
    return {};
  }
};

class HostileDriveTest : public HostileTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    HostileTest::SetUp();
    if (IsSkipped()) return;
    use(GetParam());
    change_and_scan({"moving/deep/file", "kept/file"});
  }
};

TEST_P(HostileDriveTest, DirectorySwappedForALinkWhileItIsCopied_NothingFromOutsideIsCopied) {
  run();
  change_and_scan({"moving/deep/secret", "kept/new"});
  const std::string moving = (drive() / "moving").native();
  const std::string elsewhere = (drive() / "elsewhere").native();
  replace(program_, "case \"$*\" in *--exclude=/.spoor*|copy*|backup*|*create*) [[ -L '" + moving +
                        "' ]] || { mv -T '" + moving + "' '" + elsewhere + "' && ln -sT '" +
                        (work_ / "outside").native() + "' '" + moving +
                        "'; };; esac\nexec \"$real\" \"$@\"\n");
  expect_run_fails(3, "skips moving");
  EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
  const fs::path copy = copied();
  EXPECT_FALSE(has_secret(copy));
  EXPECT_TRUE(fs::exists(copy / "moving/deep/file")) << "the older file is still there";
  EXPECT_TRUE(fs::exists(copy / "kept/new"));
  fs::remove(work_ / "bin" / program_);
  fs::remove(moving);
  fs::rename(elsewhere, moving);
  run();
  expect_same();
}

TEST_P(HostileDriveTest, MountThatRefusesRoot_IsNamedAndTheRestIsCopied) {
  if (!faults::HangingDisk::is_possible()) GTEST_SKIP() << "needs FUSE";
  const fs::path mount = drive() / "kept/mount";
  change_and_scan({"kept/mount/below"});
  {
    const faults::HangingDisk disk(mount, nobody);
    for (const char* file : {"kept/new", "kept/newer"}) {
      change(file);
      mark_and_scan("kept");
      const auto done = run();
      EXPECT_THAT(done.err,
                  HasSubstr("skips " + mount.native() + ": another file system is mounted there\n"));
      EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
      EXPECT_TRUE(fs::exists(copied() / file));
    }
  }
  expect_same();
}

TEST_P(HostileDriveTest, FileThatCannotBeRead_IsNamedAndCopiedByTheNextRun) {
  if (!faults::HangingDisk::is_possible()) GTEST_SKIP() << "needs FUSE";
  run();
  change_and_scan({"kept/unread", "kept/new", "moving/new"});
  {
    const faults::HangingDisk disk(drive() / "kept/unread", nobody);
    const auto done = run_unconfined();
    EXPECT_EQ(done.code, 3);
    EXPECT_THAT(done.err, HasSubstr("skips kept/unread: "));
  }
  EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
  EXPECT_TRUE(fs::exists(copied() / "kept/new"));
  EXPECT_TRUE(fs::exists(copied() / "moving/new"));
  run();
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Programs, HostileDriveTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

class HostileListTest : public HostileTest {};

// As from a scan.db of another's.
TEST_F(HostileListTest, PathThatLeadsOutOfTheDrive_IsRefused) {
  use("rsync");
  change_and_scan({"a/file"});
  run();
  std::ofstream(work_ / "bin/spoor")
      << "#!/bin/bash\ncase \" $* \" in *' -0 '*) printf '../outside/deep/\\0';; *) exec '" << SPOOR
      << "' \"$@\";; esac\n";
  fs::permissions(work_ / "bin/spoor", fs::perms(0755));
  auto command = run_command("copy");
  command[1] = "SPOOR=" + (work_ / "bin/spoor").native() + " --config " + cluster_.config_of(node()).native();
  const auto refused = support::run_command(command);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("a list has a path that leads out of its top: ../outside/deep/"));
}

// All programs and links of the system would be below it.
TEST_F(HostileListTest, DriveAtTheTop_IsRefused) {
  const auto refused = support::run_command(
      {"/usr/bin/python3", "-Bc",
       "import sys; sys.path.insert(0, sys.argv[1]); import spoor_feed; spoor_feed.confine('/')", RECIPES});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("nothing can be mounted over /"));
}

class HostileRepositoryTest : public HostileTest {
 protected:
  void SetUp() override {
    HostileTest::SetUp();
    if (IsSkipped()) return;
    use("restic");
    fs::create_directories(drive() / "home");
    fs::create_directory_symlink(work_ / "outside", drive() / "home/link");
    change_and_scan({"home/file"});
    run();
  }

  void add_snapshot(const std::string& tags, const std::string& options) {
    const auto done = run_program(
        {"bash", "-c",
         "cd '" + work_.path().native() + "' && restic backup --quiet --tag " + tags + ' ' + options});
    EXPECT_EQ(done.code, 0) << done.err;
  }
};

TEST_F(HostileRepositoryTest, ListingThatLeadsOutOfTheTarget_RestoreIsRefused) {
  for (const char* path : {"../outside", "/outside", "home/../../outside"}) {
    std::ofstream(work_ / "listing") << R"({"deleted":")" << path << "\"}\n";
    add_snapshot("copy,changes,layer-2,feed-1,scan-2,part-none,left-0",
                 "--stdin --stdin-filename directories.jsonl <listing");
    const auto refused = restore();
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr(std::string("leads out of its top: ") + path));
    EXPECT_TRUE(fs::exists(work_ / "outside/deep/secret"));
    EXPECT_EQ(run_program({"restic", "forget", "--quiet", "latest"}).code, 0);
    fs::remove_all(work_ / "restored");
  }
}

TEST_F(HostileRepositoryTest, FileBelowALinkOfAnOlderLayer_IsNotWrittenThroughIt) {
  fs::create_directories(work_ / "home/link");
  std::ofstream(work_ / "home/link/planted") << "x";
  add_snapshot("copy,files,part-1", "home/link/planted");
  std::ofstream(work_ / "listing") << "{}\n";
  add_snapshot("copy,changes,layer-2,feed-1,scan-2,part-1,left-0",
               "--stdin --stdin-filename directories.jsonl <listing");
  restore();
  EXPECT_FALSE(fs::exists(work_ / "outside/planted"));
  EXPECT_TRUE(fs::is_symlink(work_ / "restored/home/link"));
}

// Both directories are left to the next layer, and this one has files of them.
TEST_F(HostileRepositoryTest, LinkThatIsADirectoryInALaterLayer_IsRestoredAsOne) {
  if (!faults::HangingDisk::is_possible()) GTEST_SKIP() << "needs FUSE";
  fs::remove(drive() / "home/link");
  for (const char* path : {"home/link/file", "home/link/unread", "home/unread"}) change(path);
  cluster_.scan(node());
  {
    const faults::HangingDisk one(drive() / "home/link/unread", nobody);
    const faults::HangingDisk other(drive() / "home/unread", nobody);
    EXPECT_EQ(run_unconfined().code, 3);
  }
  const auto done = restore();
  EXPECT_EQ(done.code, 0) << done.err;
  EXPECT_TRUE(fs::exists(work_ / "restored/home/link/file"));
  EXPECT_FALSE(fs::exists(work_ / "outside/file"));
}

class StateOfRecipesTest : public HostileTest {
 protected:
  void SetUp() override {
    HostileTest::SetUp();
    if (IsSkipped()) return;
    use("rsync");
    change_and_scan({"quiet/file", "a/file"});
    run();
    std::ofstream(drive() / "quiet/unmarked") << "1";
  }

  // As an earlier version has left it.
  void write_old_state() {
    fs::remove(state());
    std::ofstream(old_state()) << R"({"missing": ["quiet"], "unknown": []})";
  }
};

TEST_F(StateOfRecipesTest, LinksInDataDir_AreNotWrittenThrough) {
  std::ofstream(work_ / "victim") << "kept";
  for (const char* end : {"left", "lock", "new"}) {
    fs::path link = old_state().replace_extension(end);
    fs::create_symlink(work_ / (std::string(end) == "lock" ? "made" : "victim"), link);
  }
  run();
  EXPECT_EQ(content(work_ / "victim"), "kept");
  EXPECT_FALSE(fs::exists(work_ / "made"));
  EXPECT_EQ(fs::status(state()).permissions(), fs::perms(0600));
}

TEST_F(StateOfRecipesTest, FileOfAnEarlierVersion_IsTakenOver) {
  write_old_state();
  run();
  EXPECT_TRUE(fs::exists(work_ / "copy/quiet/unmarked"));
  EXPECT_FALSE(fs::exists(old_state()));
  EXPECT_TRUE(fs::exists(state()));
}

TEST_F(StateOfRecipesTest, FileOfAnotherUserOrALink_IsRefused) {
  write_old_state();
  ASSERT_EQ(::chown(old_state().c_str(), nobody, nobody), 0);
  const std::string why = "recipe-copy.left is not a file of root's or of this user's";
  expect_run_fails(1, why);
  fs::rename(old_state(), work_ / "state");
  ASSERT_EQ(::chown((work_ / "state").c_str(), 0, 0), 0);
  fs::create_symlink(work_ / "state", old_state());
  expect_run_fails(1, why);
  EXPECT_FALSE(fs::exists(work_ / "copy/quiet/unmarked"));
}

TEST_F(StateOfRecipesTest, DirectoryThatOthersCanWrite_IsRefused) {
  fs::permissions(state_of_recipes(), fs::perms(0777));
  expect_run_fails(1, "belongs to another user, or others can write it");
  fs::permissions(state_of_recipes(), fs::perms(0700));
  ASSERT_EQ(::chown(state_of_recipes().c_str(), nobody, nobody), 0);
  expect_run_fails(1, "belongs to another user, or others can write it");
}

TEST_F(StateOfRecipesTest, RootWithoutTheRightToMount_IsRefusedUnlessItSaysSo) {
  auto command = run_command("copy");
  command.insert(command.begin(), {"setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"});
  const auto refused = support::run_command(command);
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("cannot keep links on " + drive().native() + " from leading out of it"));
  command.insert(command.begin() + 4, "SPOOR_UNCONFINED=1");
  EXPECT_EQ(support::run_command(command).code, 0);
}

}  // namespace
}  // namespace spoor::cluster
