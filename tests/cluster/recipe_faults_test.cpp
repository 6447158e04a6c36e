// The recipes that copy and back up, while directories are moved, made and removed, with two runs at once,
// and with programs that fail.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/cluster/one_node.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string name_of(const testing::TestParamInfo<std::string>& parameter) { return parameter.param; }

// By the program that a recipe is for.
class RecipeFaultsTest : public OneNodeTest {
 protected:
  void SetUp() override {
    fs::create_directory(work_ / "bin");
    std::ofstream(work_ / "password") << "secret";
  }

  void use(const std::string& program) {
    program_ = program;
    if (program == "restic") make_restic_repository(work_ / "repository");
    if (program == "borg") {
      EXPECT_EQ(run_program({program, "init", "--encryption", "none"}).code, 0);
    }
  }

  bool has_layers() const { return program_ == "restic" || program_ == "borg"; }

  std::vector<std::string> environment() const {
    return {"PATH=" + (work_ / "bin").native() + ':' + std::getenv("PATH"),
            "RESTIC_REPOSITORY=" + (work_ / "repository").native(),
            "RESTIC_PASSWORD_FILE=" + (work_ / "password").native(),
            "RESTIC_CACHE_DIR=" + (work_ / "cache").native(),
            "BORG_REPO=" + (work_ / "repository").native(),
            "BORG_BASE_DIR=" + (work_ / "borg").native(),
            "BORG_PASSPHRASE=secret",
            "RCLONE_CONFIG=" + (work_ / "rclone").native()};
  }

  support::CommandResult run_program(const std::vector<std::string>& arguments) const {
    std::vector<std::string> command{"env"};
    for (const std::string& each : environment()) command.push_back(each);
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(command);
  }

  std::vector<std::string> run_command(const std::string& consumer) {
    std::vector<std::string> arguments{drive().native(), consumer};
    if (has_layers()) {
      arguments.insert(arguments.begin(), "backup");
    } else {
      arguments.insert(arguments.begin() + 1, copy_);
    }
    return recipe_command(program_ + "-from-feed", arguments, environment());
  }

  support::CommandResult run(const std::string& consumer = "copy") {
    auto done = support::run_command(run_command(consumer));
    EXPECT_EQ(done.code, 0) << done.err;
    return done;
  }

  // What the copy has, or a restore.
  fs::path copied() {
    if (!has_layers()) return copy_;
    const fs::path restored = work_ / "restored";
    fs::remove_all(restored);
    const auto done = recipe(program_ + "-from-feed", {"restore", restored.native(), "copy"}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
    return restored;
  }

  void expect_same() {
    EXPECT_EQ(support::run_command({"diff", "-r", "--exclude=.spoor", drive(), copied()}).out, "");
  }

  // Puts this script in place of a program; it calls "$real" "$@" to run the program itself.
  void replace(const std::string& program, const std::string& script) {
    const fs::path file = work_ / "bin" / program;
    std::ofstream(file) << "#!/bin/bash\nPATH=${PATH#*:} real=" << program << '\n' << script;
    fs::permissions(file, fs::perms(0755));
  }

  // Moves a directory away when the program begins to copy, and then back, if wanted.
  void move_while_it_copies(bool and_back) {
    const std::string path = "'" + drive().native() + "/";
    const std::string away = "mv -T " + path + "moving' " + path + "elsewhere' 2>/dev/null";
    const std::string back = "mv -T " + path + "elsewhere' " + path + "moving'\n";
    replace(program_, "case \"$*\" in *--exclude=/.spoor*|copy*|sync*|backup*|*create*) " + away +
                          ";; *) exec \"$real\" \"$@\";; esac\n\"$real\" \"$@\"; code=$?\n" +
                          (and_back ? back : "") + "exit $code\n");
  }

  // It is the same directory to the scans before and after.
  void end_move() {
    fs::remove(work_ / "bin" / program_);
    if (fs::exists(drive() / "elsewhere")) fs::rename(drive() / "elsewhere", drive() / "moving");
    mark_and_scan("moving");
  }

  void mark_and_scan(const std::string& path) {
    ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", path}).code, 0);
    scan_settled();
  }

  support::TempDirectory work_;
  std::string program_;
  std::string copy_ = work_ / "copy";
};

class MovedDirectoryTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    RecipeFaultsTest::SetUp();
    use(GetParam());
    change("moving/deep/file");
    change("kept/file");
    scan_settled();
  }
};

class MovedAwayTest : public MovedDirectoryTest {};

TEST_P(MovedAwayTest, DuringACopyOfChanges_IsCopiedByTheNextRun) {
  run();
  change("moving/deep/new");
  change("kept/new");
  scan_settled();
  move_while_it_copies(false);
  run();
  EXPECT_TRUE(fs::exists(copied() / "moving/deep/file")) << "the older file is still there";
  EXPECT_TRUE(fs::exists(copied() / "kept/new"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MovedAwayAndBackDuringACopyOfChanges_IsCopiedByTheNextRun) {
  run();
  change("moving/deep/new");
  change("kept/new");
  scan_settled();
  move_while_it_copies(true);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep/new"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedAwayTest, DuringAFullCopy_IsCopiedByTheNextRun) {
  move_while_it_copies(false);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MovedAwayAndBackDuringAFullCopy_IsCopiedByTheNextRun) {
  move_while_it_copies(true);
  run();
  EXPECT_FALSE(fs::exists(copied() / "moving/deep"));
  end_move();
  run();
  expect_same();
}

TEST_P(MovedDirectoryTest, MadeAfterTheScanAndRemovedAfterAFullCopy_IsRemovedFromTheCopy) {
  fs::create_directories(drive() / "later/deep");
  fs::create_directories(drive() / "kept/stays");
  std::ofstream(drive() / "later/deep/file") << "1";
  std::ofstream(drive() / "kept/stays/file") << "1";
  run();
  run();
  EXPECT_TRUE(fs::exists(copied() / "later/deep/file")) << "no scan has looked for it";
  fs::remove_all(drive() / "later");
  mark_and_scan("later");
  run();
  expect_same();
  mark_and_scan("kept");
  run();
  expect_same();
}

// Its content is not that of the directory which the scan found.
TEST_P(MovedDirectoryTest, ParentReplacedByASymbolicLink_IsNotFollowed) {
  run();
  change("moving/deep/file");
  change("kept/new");
  scan_settled();
  fs::rename(drive() / "moving", drive() / "elsewhere");
  fs::create_directories(work_ / "other/deep");
  std::ofstream(work_ / "other/deep/file") << "other";
  fs::create_directory_symlink(work_ / "other", drive() / "moving");
  run();
  EXPECT_THAT(content(copied() / "moving/deep/file"), HasSubstr("moving/deep/file"));
  fs::remove(drive() / "moving");
  end_move();
  run();
  expect_same();
}

// borg takes a second for each call; that it is back in the end is harder to notice.
INSTANTIATE_TEST_SUITE_P(Programs, MovedAwayTest, testing::Values("rsync", "rclone", "restic"), name_of);
INSTANTIATE_TEST_SUITE_P(Programs, MovedDirectoryTest, testing::Values("rsync", "rclone", "restic", "borg"),
                         name_of);

// Another consumer does not wait.
TEST_F(RecipeFaultsTest, RunKilled_NextRunWaitsForItsProgram) {
  use("rsync");
  change("a/file");
  cluster_.scan(node());
  const fs::path begun = work_ / "begun";
  const fs::path end = work_ / "end";
  for (const fs::path& each : {begun, end}) ASSERT_EQ(::mkfifo(each.c_str(), 0600), 0);
  replace("rsync", "if mkdir '" + (work_ / "once").native() + "' 2>/dev/null; then echo >'" + begun.native() +
                       "'; read -r <'" + end.native() + "'; fi\nexec \"$real\" \"$@\"\n");
  support::Daemon first(run_command("copy"));
  std::string line;
  std::getline(std::ifstream(begun), line);
  first.signal(SIGKILL);
  first.wait();
  support::Daemon second(run_command("copy"));
  EXPECT_EQ(second.wait_for("waits for the end of another run of "), "'copy'");
  copy_ = work_ / "another";
  run("another");
  expect_same();
  std::ofstream(end) << '\n';
  EXPECT_EQ(second.wait(), 0);
  copy_ = work_ / "copy";
  expect_same();
}

class FullCopyTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {};

TEST_P(FullCopyTest, AfterAReset_FilesWithTheSameSizeAndTimeAreCompared) {
  const std::string& place = GetParam();
  std::unique_ptr<support::Daemon> server;
  use(place == "rsync" ? "rsync" : "rclone");
  if (place == "webdav") {
    server.reset(new support::Daemon({"rclone", "serve", "webdav", "--addr", "127.0.0.1:0", work_.path()}));
    const std::string url = "http://" + server->wait_for("WebDav Server started on http://");
    std::ofstream(work_ / "rclone") << "[served]\ntype = webdav\nvendor = other\nurl = " << url << '\n';
    copy_ = "served:copy";
  }
  change("a/file");
  cluster_.scan(node());
  run();
  const fs::path file = drive() / "a/file";
  const auto modified = fs::last_write_time(file);
  std::ofstream(file) << "A/FILE";
  fs::last_write_time(file, modified);
  ASSERT_EQ(changes({"--consumer", "copy", "--forget"}).code, 0);
  run();
  copy_ = work_ / "copy";
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Places, FullCopyTest, testing::Values("rsync", "local", "webdav"), name_of);

class DurableCopyTest : public RecipeFaultsTest, public testing::WithParamInterface<std::string> {};

TEST_P(DurableCopyTest, CopyIsNotOnTheDisk_IsNotCommitted) {
  use(GetParam());
  for (const char* path : {"a/file", "b/file"}) {
    SCOPED_TRACE(path);
    change(path);
    cluster_.scan(node());
    const std::string before = changes({"--consumer", "copy"}).out;
    replace("sync", "exit 1\n");
    EXPECT_EQ(support::run_command(run_command("copy")).code, 1);
    EXPECT_EQ(changes({"--consumer", "copy"}).out, before);
    fs::remove(work_ / "bin/sync");
    run();
    EXPECT_EQ(changes({"--consumer", "copy"}).out, "");
  }
  expect_same();
}

INSTANTIATE_TEST_SUITE_P(Programs, DurableCopyTest, testing::Values("rsync", "rclone"), name_of);

TEST_F(RecipeFaultsTest, ResticReportsAnythingElseThanAMissingFile_Fails) {
  use("restic");
  change("a/file");
  cluster_.scan(node());
  run();
  change("a/file");
  cluster_.scan(node());
  for (const char* message : {"cannot read a file", R"({"message_type":"error","error":{},"item":""})",
                              "a/other does not exist, skipping"}) {
    SCOPED_TRACE(message);
    replace("restic", std::string("case \"$*\" in *--files-from-raw*) echo '") + message +
                          "' >&2; exit 3;; esac\nexec \"$real\" \"$@\"\n");
    const auto failed = support::run_command(run_command("copy"));
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr(message));
  }
  fs::remove(work_ / "bin/restic");
  run();
  expect_same();
}

TEST_F(RecipeFaultsTest, ConsumerNamedLikeATag_IsRefused) {
  use("restic");
  change("a/file");
  cluster_.scan(node());
  for (const char* name : {"full", "files", "changes", "layer-1", "feed-x", "scan-1", "part-x", "left-0"}) {
    const auto refused = support::run_command(run_command(name));
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("choose another one for the consumer"));
  }
}

// restic takes what it excludes for a pattern.
TEST_F(RecipeFaultsTest, DriveNamedLikeAPattern_ResticLeavesItsFolderOut) {
  use("restic");
  const fs::path odd = work_ / "dr[1]v*e";
  fs::create_directory(odd);
  cluster_.configure(node(), [&](nlohmann::json& config) { config["drives"] = {odd.native()}; });
  node().drives[0] = odd;
  change("a/file");
  cluster_.scan(node());
  run();
  EXPECT_TRUE(fs::exists(drive() / ".spoor"));
  EXPECT_FALSE(fs::exists(copied() / ".spoor"));
  expect_same();
}

}  // namespace
}  // namespace spoor::cluster
