// The recipes for restic, borg, rclone, Recoll, Nextcloud and node_exporter, with real scans and the programs
// that they are for.
#include <gmock/gmock.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cluster/one_node.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

class ResticTest : public OneNodeTest {
 protected:
  void SetUp() override {
    std::ofstream(work_ / "password") << "secret";
    make_restic_repository(work_ / "repository");
  }

  std::vector<std::string> environment() {
    return {"RESTIC_REPOSITORY=" + (work_ / "repository").native(),
            "RESTIC_PASSWORD_FILE=" + (work_ / "password").native(),
            "RESTIC_CACHE_DIR=" + (work_ / "cache").native()};
  }

  support::CommandResult restic(const std::vector<std::string>& arguments) {
    std::vector<std::string> command{"env"};
    for (const std::string& each : environment()) command.push_back(each);
    command.emplace_back("restic");
    command.insert(command.end(), arguments.begin(), arguments.end());
    return support::run_command(command);
  }

  void back_up() {
    const auto done = recipe("restic-from-feed", {"backup", drive().native()}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
  }

  std::size_t snapshots(const std::string& tag) {
    return json::parse(restic({"snapshots", "--json", "--tag", tag}).out).size();
  }

  // What differs between the drive and what is restored.
  std::string restore() {
    const auto done = recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment());
    EXPECT_EQ(done.code, 0) << done.err;
    return support::run_command({"diff", "-r", "--exclude=.spoor", drive().native(), work_ / "restored"}).out;
  }

  support::TempDirectory work_;
};

TEST_F(ResticTest, Restore_AllSnapshotsInOrder_EqualsTheDrive) {
  change("bucket/quiet/file");
  change("bucket/a/file");
  change("top");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 1U);
  change("bucket/a/file");
  change("bucket/-b/c/file\nwith a break");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,changes"), 1U);
  const std::string changes = restic({"ls", "latest", "--tag", "restic,files"}).out;
  EXPECT_THAT(changes, HasSubstr("/bucket/a/file"));
  EXPECT_THAT(changes, testing::Not(HasSubstr("quiet"))) << "nothing but what changed";
  back_up();
  EXPECT_EQ(snapshots("restic,changes"), 1U) << "nothing changed";
  change("bucket/a/file");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_DirectoryVanishedAfterScan_Succeeds) {
  change("bucket/a/file");
  change("bucket/b/file");
  cluster_.scan(node());
  back_up();
  fs::remove_all(drive() / "bucket/b");
  change("bucket/a/vanishing/file");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "bucket/b"}).code, 0);
  cluster_.scan(node());
  fs::remove_all(drive() / "bucket/a/vanishing");
  back_up();
  EXPECT_EQ(restore(), "");
}

class ForgottenSnapshotTest : public ResticTest, public testing::WithParamInterface<const char*> {};

TEST_P(ForgottenSnapshotTest, SnapshotForgotten_RestoreFailsAndNextBackupIsFull) {
  for (const char* path : {"a/file", "b/file", "c/file"}) {
    change(path);
    cluster_.scan(node());
    back_up();
  }
  const std::string tag = GetParam();
  const auto found = json::parse(restic({"snapshots", "--json", "--tag", "restic," + tag}).out);
  ASSERT_EQ(found.size(), tag == "files" ? 3U : 2U);
  ASSERT_EQ(restic({"forget", found[found.size() - 2]["id"].get<std::string>()}).code, 0);
  const auto refused = recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("keep all snapshots since the last full one\n"));
  EXPECT_FALSE(fs::exists(work_ / "restored")) << "nothing was written";
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 2U);
  EXPECT_EQ(restore(), "");
}

INSTANTIATE_TEST_SUITE_P(Of, ForgottenSnapshotTest, testing::Values("changes", "files"));

TEST_F(ResticTest, Backup_DriveUnmounted_Fails) {
  change("a/file");
  cluster_.scan(node());
  back_up();
  change("a/more");
  cluster_.scan(node());
  const fs::path away = work_ / "away";
  fs::rename(drive(), away);
  fs::create_directory(drive());
  const auto refused = recipe("restic-from-feed", {"backup", drive().native()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("carries no identity"));
  fs::remove(drive());
  fs::rename(away, drive());
  back_up();
  EXPECT_EQ(restore(), "");
}

// The scans before and after the backup know it as the same directory, which needs no second look.
TEST_F(ResticTest, Backup_DirectoryMovedAwayAndBack_IsRestored) {
  change("moving/deep/file");
  cluster_.scan(node());
  back_up();
  change("moving/deep/new");
  change("moving/new");
  change("top");
  cluster_.scan(node());
  fs::rename(drive() / "moving", drive() / "elsewhere");
  back_up();
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_Failed_NextOneCoversTheSameChanges) {
  change("a/file");
  cluster_.scan(node());
  back_up();
  change("b/file");
  cluster_.scan(node());
  fs::rename(work_ / "repository", work_ / "away");
  const auto failed = recipe("restic-from-feed", {"backup", drive().native()}, environment());
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("restic-from-feed: restic snapshots failed with code 1"));
  fs::rename(work_ / "away", work_ / "repository");
  back_up();
  EXPECT_EQ(restore(), "");
}

TEST_F(ResticTest, Backup_FullSnapshotForgotten_IsFullAgain) {
  change("a/file");
  cluster_.scan(node());
  EXPECT_NE(recipe("restic-from-feed", {"restore", (work_ / "restored").native()}, environment()).code, 0);
  back_up();
  ASSERT_EQ(restic({"forget", "latest"}).code, 0);
  change("b/file");
  cluster_.scan(node());
  back_up();
  EXPECT_EQ(snapshots("restic,full"), 1U);
  EXPECT_EQ(restore(), "");
}

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
    return recipe("borg-from-feed", {"backup", drive().native()}, environment_);
  }

  support::CommandResult restore() {
    return recipe("borg-from-feed", {"restore", (work_ / "restored").native()}, environment_);
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
  EXPECT_THAT(failed.err, HasSubstr("borg-from-feed: borg list failed with code 2"));
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

class RcloneTest : public OneNodeTest {
 protected:
  support::CommandResult rclone(const std::string& consumer = "rclone") {
    return recipe("rclone-from-feed", {drive().native(), copy().native(), consumer}, environment_);
  }

  void expect_copied() {
    const auto copied = rclone();
    EXPECT_EQ(copied.code, 0) << copied.err;
    EXPECT_EQ(support::run_command({"diff", "-r", "--exclude=.spoor", drive().native(), copy()}).out, "");
  }

  fs::path copy() const { return work_ / "copy"; }

  support::TempDirectory work_;
  const std::vector<std::string> environment_{"RCLONE_CONFIG=" + (work_ / "none").native()};
};

TEST_F(RcloneTest, EmptyDrive_ThenFiles_AreCopied) {
  cluster_.scan(node());
  EXPECT_EQ(rclone().code, 0);
  change("a/file");
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, DriveUnmounted_FailsAndKeepsTheCopy) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("top");
  cluster_.scan(node());
  const fs::path away = work_ / "away";
  fs::rename(drive(), away);
  fs::create_directory(drive());
  for (const char* consumer : {"rclone", "new"}) {
    const auto refused = rclone(consumer);
    EXPECT_EQ(refused.code, 1);
    EXPECT_THAT(refused.err, HasSubstr("carries no identity"));
  }
  EXPECT_TRUE(fs::exists(copy() / "a/file"));
  fs::remove(drive());
  fs::rename(away, drive());
  expect_copied();
}

TEST_F(RcloneTest, CopyFailed_IsRepeatedByTheNextRun) {
  change("bucket/a/file");
  scan_settled();
  expect_copied();
  change("bucket/b/file");
  scan_settled();
  fs::rename(copy(), work_ / "away");
  std::ofstream(copy()) << "in the way";
  EXPECT_EQ(rclone().code, 1);
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "bucket/\nbucket/b/\n");
  fs::remove(copy());
  fs::rename(work_ / "away", copy());
  expect_copied();
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "");
}

TEST_F(RcloneTest, ConsumerForgotten_CopiesEverything) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  ASSERT_EQ(changes({"--consumer", "rclone", "--forget"}).code, 0);
  change("b/file");
  cluster_.scan(node());
  const auto copied = rclone();
  EXPECT_THAT(copied.out, HasSubstr("copies all of"));
  expect_copied();
}

TEST_F(RcloneTest, DirectoryVanishedAfterScan_IsDeletedOnceAScanFindsThat) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("a/below/file");
  change("b/file");
  cluster_.scan(node());
  fs::remove_all(drive() / "a");
  EXPECT_EQ(rclone().code, 0);
  EXPECT_TRUE(fs::exists(copy() / "a/file")) << "it may have been moved for a moment only";
  EXPECT_TRUE(fs::exists(copy() / "b/file"));
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "a"}).code, 0);
  cluster_.scan(node());
  expect_copied();
  EXPECT_EQ(changes({"--consumer", "rclone"}).out, "");
}

// The scans before and after the copy know it as the same directory, and do not list it again.
TEST_F(RcloneTest, DirectoryMovedAwayAndBack_ItsChangesAreCopied) {
  change("moving/deep/file");
  scan_settled();
  expect_copied();
  change("top");
  scan_settled();
  change("moving/deep/new");
  scan_settled();
  fs::rename(drive() / "moving", drive() / "elsewhere");
  ASSERT_EQ(rclone().code, 0);
  fs::rename(drive() / "elsewhere", drive() / "moving");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "moving", "elsewhere"}).code, 0);
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, NamesInTwoUnicodeNormalForms_AreTwoFiles) {
  change("full/caf\u00e9");
  change("full/cafe\u0301");
  cluster_.scan(node());
  expect_copied();
  change("a/caf\u00e9");
  cluster_.scan(node());
  expect_copied();
  change("a/cafe\u0301");
  cluster_.scan(node());
  expect_copied();
}

TEST_F(RcloneTest, NameThatRcloneCannotCopy_IsReportedAndNotCommitted) {
  change("a/file");
  cluster_.scan(node());
  expect_copied();
  change("a/\u201bquoted");
  change("b/file");
  cluster_.scan(node());
  const auto refused = rclone();
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("rclone cannot copy a name with U+201B: a/"));
  EXPECT_TRUE(fs::exists(copy() / "b/file"));
  fs::remove(drive() / "a/\u201bquoted");
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "a"}).code, 0);
  cluster_.scan(node());
  expect_copied();
}

// With the names of files, and without.
class RecollTest : public OneNodeTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override { configure("index"); }

  // A configuration of Recoll, and its index, in a directory of this name.
  void configure(const std::string& name) {
    fs::create_directory(work_ / name);
    std::ofstream(work_ / name / "recoll.conf") << "topdirs = " << drive().native() << '\n'
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
    return recipe("index-from-feed", {drive().native()},
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
    EXPECT_GT(indexed("index").size(), 1U);
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

// With a program in place of `occ`, which Debian does not have (data/occ).
class NextcloudTest : public OneNodeTest {
 protected:
  support::CommandResult run_occ(const std::string& occ = OCC) {
    fs::remove(calls_);
    return recipe("nextcloud-from-feed", {drive().native()},
                  {"OCC=" + occ, "OCC_DATA=" + data().native(), "OCC_CACHE=" + cache_.native(),
                   "NEXTCLOUD_DATA=" + data().native()});
  }

  fs::path data() { return drive() / "cloud"; }

  // What Nextcloud knows of the files of users, and what it should know.
  std::set<std::string> known() { return json::parse(content(cache_)).get<std::set<std::string>>(); }

  std::set<std::string> expected() {
    std::set<std::string> found;
    for (const auto& user : fs::directory_iterator(data())) {
      if (user.is_symlink() || !fs::is_directory(user.path() / "files")) continue;
      for (auto at = fs::recursive_directory_iterator(user.path() / "files");
           at != fs::recursive_directory_iterator(); ++at) {
        const std::string path = at->path().lexically_relative(data()).native();
        if (is_utf8(path)) {
          found.insert(path);
        } else {
          at.disable_recursion_pending();
        }
      }
    }
    return found;
  }

  static bool is_utf8(const std::string& path) {
    return json(path).dump(-1, ' ', false, json::error_handler_t::replace) ==
           json(path).dump(-1, ' ', false, json::error_handler_t::ignore);
  }

  support::TempDirectory work_;
  const fs::path cache_ = work_ / "cache";
  const fs::path calls_ = work_ / "cache.calls";
};

TEST_F(NextcloudTest, EveryRound_KnowsTheFilesOfUsers) {
  SPOOR_RANDOM(random);
  const std::string files = "cloud/user/files";
  fs::create_directories(drive() / files);
  support::TreeWriter writer(random, drive() / files, support::TreeOddities::all);
  writer.fill(15);
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (std::uint64_t count = random.below(6); round > 0 && count > 0; --count) writer.change();
    std::string marks;
    std::istringstream changed(writer.take_changed());
    for (std::string path; std::getline(changed, path, '\0');) marks += files + '/' + path + '\0';
    if (!marks.empty()) {
      ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, marks).code, 0);
    }
    cluster_.scan(node());
    const auto done = run_occ();
    EXPECT_EQ(done.code, 0) << done.err;
    EXPECT_EQ(done.out.find("the files of all users") != std::string::npos, round == 0) << done.out;
    EXPECT_EQ(known(), expected());
  }
}

TEST_F(NextcloudTest, ChangedDirectories_OfUsersOnly_AreScannedShallowly) {
  for (const char* path : {"cloud/ann/files/photos/a b/1", "cloud/ben/files/1", "cloud/appdata_x/files_y/1"})
    change(path);
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(content(calls_), "-v --all\n");
  for (const char* path : {"cloud/ann/files/photos/a b/2", "cloud/appdata_x/files_y/2", "cloud/ben/cache/2",
                           "other/ann/files/2"}) {
    change(path);
  }
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(content(calls_), "-v --shallow --path=/ann/files/photos/a b\n");
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_FALSE(fs::exists(calls_)) << "nothing changed";
  for (int count = 0; count < 101; ++count) change("cloud/ben/files/d" + std::to_string(count) + "/file");
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(content(calls_), "-v --path=/ben/files\n") << "not a call for each";
  EXPECT_EQ(known(), expected());
}

TEST_F(NextcloudTest, ScanThatFailsWithCode0_IsRepeatedByTheNextRun) {
  change("cloud/ann/files/1");
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  change("cloud/ann/files/2");
  scan_settled();
  for (const char* message :
       {"Exception during scan: database is locked", "Another process is already scanning '/ann/files'",
        "Unknown user 1 ann", "Error during scan: no space",
        "| Folders | Files | Errors | Elapsed time |\n+---------+\n| 1       | 1     | 2      | 00:00:00     "
        "|"}) {
    SCOPED_TRACE(message);
    std::ofstream(work_ / "cache.fails") << message;
    const auto failed = run_occ();
    EXPECT_EQ(failed.code, 1);
    EXPECT_THAT(failed.err, HasSubstr(message));
  }
  fs::remove(work_ / "cache.fails");
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(known(), expected());
}

// occ counts a path that it does not find as an error.
TEST_F(NextcloudTest, PathThatOccDoesNotFind_IsScannedAgain) {
  change("cloud/ann/files/1");
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  change("cloud/ann/files/2");
  scan_settled();
  std::ofstream(work_ / "cache.fails") << "Path not found: files\n| Errors |\n+--------+\n| 1      |\n";
  EXPECT_EQ(run_occ().code, 0);
  fs::remove(work_ / "cache.fails");
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(known(), expected());
}

TEST_F(NextcloudTest, DirectoryMovedAwayDuringTheFirstScan_IsScannedByTheNextRun) {
  change("cloud/ann/files/moving/deep/file");
  scan_settled();
  const fs::path moving = data() / "ann/files/moving";
  const std::string occ = work_ / "occ";
  std::ofstream(occ) << "#!/bin/sh\nmv " << moving << " " << work_ / "away" << "\nexec " OCC " \"$@\"\n";
  fs::permissions(occ, fs::perms(0755));
  EXPECT_EQ(run_occ(occ).code, 0);
  EXPECT_THAT(known(), testing::Not(testing::Contains("ann/files/moving/deep")));
  fs::rename(work_ / "away", moving);
  ASSERT_EQ(cluster_.spoor(node(), {"mark", "--kind", "tree", "cloud/ann/files/moving"}).code, 0);
  scan_settled();
  EXPECT_EQ(run_occ().code, 0);
  EXPECT_EQ(known(), expected());
}

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
