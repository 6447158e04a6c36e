// The recipe for Nextcloud, with real scans and a program in place of `occ`.
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "tests/cluster/one_node.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// With a program in place of `occ`, which Debian does not have (data/occ).
class NextcloudTest : public OneNodeTest {
 protected:
  support::CommandResult run_occ(const std::string& occ = OCC) {
    fs::remove(calls_);
    return recipe("spoor-nextcloud", {drive().native()},
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

TEST_F(NextcloudTest, NameInAMessage_CannotControlATerminal) {
  change("cloud/ann/files/1");
  scan_settled();
  std::ofstream(work_ / "cache.fails") << "Exception during scan: \x1b]0;title\x07 \xc2\x9b\n";
  const auto failed = run_occ();
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("Exception during scan: \\x1b]0;title\\x07 \\x9b\n"));
  EXPECT_EQ(failed.err.find('\x1b'), std::string::npos);
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

}  // namespace
}  // namespace spoor::cluster
