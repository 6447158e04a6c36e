// The recipes that copy and back up, over rounds of random changes on two drives, with the programs that they
// are for. SPOOR_RECIPE_ROUNDS sets how many.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <utility>

#include "tests/cluster/one_node.h"
#include "tests/support/locales.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

int rounds(int unless_set) {
  const char* const set = std::getenv("SPOOR_RECIPE_ROUNDS");
  return set == nullptr ? unless_set : std::atoi(set);
}

class RecipeRoundsTest : public OneNodeTest, public testing::WithParamInterface<const char*> {
 protected:
  RecipeRoundsTest() : OneNodeTest(2) {
    for (const fs::path& each : node().drives)
      writers_.emplace_back(random_, each, support::TreeOddities::all);
    for (support::TreeWriter& writer : writers_) writer.fill(15);
    scan();
  }

  // Changes on both drives, which have names in common, and the scan that finds them.
  void change_and_scan() {
    for (std::size_t at = 0; at < writers_.size(); ++at) {
      for (std::uint64_t count = random_.below(6); count > 0; --count) writers_[at].change();
      std::string changed = writers_[at].take_changed();
      if (random_.one_in(2)) changed += rewrite_unnoticed(node().drives[at]);
      if (changed.empty()) continue;
      ASSERT_EQ(cluster_.spoor(node(), {"mark", "-0"}, changed).code, 0);
    }
    scan();
  }

  // Of two, one that keeps the names of files.
  bool keeps_files() const { return std::string(GetParam()) != "C"; }

  void scan() { cluster_.scan(node(), 0, settings()); }

  std::vector<std::string> environment() {
    auto variables = locales_.environment(GetParam());
    for (const auto& [name, file] : std::map<std::string, std::string>{{"RESTIC_REPOSITORY", "repository"},
                                                                       {"RESTIC_PASSWORD_FILE", "password"},
                                                                       {"RESTIC_CACHE_DIR", "cache"},
                                                                       {"BORG_REPO", "repository"},
                                                                       {"BORG_BASE_DIR", "borg"},
                                                                       {"RCLONE_CONFIG", "rclone"}})
      variables.push_back(name + '=' + (work_ / file).native());
    variables.emplace_back("BORG_PASSPHRASE=secret");
    return variables;
  }

  support::CommandResult run_recipe(const std::string& name, const std::vector<std::string>& arguments) {
    return recipe(name, arguments, environment(), settings());
  }

  // What differs in names, types, sizes, times, rights and bytes.
  static std::string differences(const fs::path& drive, const fs::path& copy) {
    const auto found = support::run_command(
        {"rsync", "-acni", "--exclude=/.spoor", "--delete", drive.native() + "/", copy.native() + "/"});
    EXPECT_EQ(found.code, 0) << found.err;
    return found.out;
  }

  // What rclone copies: regular files by path, with their bytes and, if wanted, their mtime.
  static std::map<std::string, std::string> files_of(const fs::path& top, bool with_time) {
    std::map<std::string, std::string> files;
    for (auto at = fs::recursive_directory_iterator(top); at != fs::recursive_directory_iterator(); ++at) {
      if (at->path() == top / ".spoor") at.disable_recursion_pending();
      if (at->is_symlink() || !at->is_regular_file()) continue;
      std::stringstream text;
      text << std::ifstream(at->path(), std::ios::binary).rdbuf();
      if (with_time) text << ' ' << at->last_write_time().time_since_epoch().count();
      files[at->path().lexically_relative(top).native()] = text.str();
    }
    return files;
  }

  // The attributes of the top directory are not restored. restic before 0.17 damages the target of a symbolic
  // link that is no UTF-8.
  static std::string without_limits_of_backups(const std::string& differences) {
    std::string rest;
    std::istringstream lines(differences);
    for (std::string line; std::getline(lines, line);) {
      const std::size_t target = line.find(" -> ");
      const bool is_damaged_target = line.starts_with("cLc") && target != std::string::npos &&
                                     line.find("\\#3", target) != std::string::npos;
      if (line != ".d..t...... ./" && !is_damaged_target) rest += line + '\n';
    }
    return rest;
  }

  support::Random random_;
  std::vector<support::TreeWriter> writers_;
  support::TempDirectory work_;
  support::Locales locales_;

 private:
  std::vector<std::string> settings() const {
    return keeps_files() ? std::vector<std::string>{"--set", "scan.file_feed=true"}
                         : std::vector<std::string>();
  }

  // Other bytes in a file of the same size and mtime. Its path, with a NUL behind it.
  std::string rewrite_unnoticed(const fs::path& drive) {
    std::error_code gone;
    for (const auto& entry : fs::recursive_directory_iterator(drive / "bucket", gone)) {
      if (!entry.is_regular_file() || entry.is_symlink() || entry.hard_link_count() > 1 ||
          entry.file_size() == 0) {
        continue;
      }
      if (!random_.one_in(4)) continue;
      const auto modified = entry.last_write_time();
      const std::string bytes = random_.bytes(entry.file_size());
      std::ofstream(entry.path()) << bytes;
      fs::last_write_time(entry.path(), modified);
      return entry.path().lexically_relative(drive).native() + '\0';
    }
    return {};
  }
};

TEST_P(RecipeRoundsTest, RsyncFromFeed_EveryRound_CopiesEqualTheDrives) {
  SCOPED_TRACE(random_.trace());
  const int last = rounds(8);
  for (int round = 0; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round > 0) change_and_scan();
    for (std::size_t at = 0; at < 2; ++at) {
      const fs::path copy = work_ / ("copy" + std::to_string(at));
      const std::string drive = node().drives[at].native();
      const auto copied = run_recipe("spoor-rsync", {drive, copy.native(), "copy" + std::to_string(at)});
      EXPECT_EQ(copied.code, 0) << copied.err;
      EXPECT_EQ(copied.out.find("copies all of " + drive) != std::string::npos, round == 0) << copied.out;
      EXPECT_EQ(copied.err, "");
      EXPECT_EQ(differences(drive, copy), "");
    }
  }
}

// One copy is a local directory, which has checksums; the other is behind WebDAV, which has none.
TEST_P(RecipeRoundsTest, RcloneFromFeed_EveryRound_CopiesEqualTheDrives) {
  SCOPED_TRACE(random_.trace());
  support::Daemon server({"rclone", "serve", "webdav", "--addr", "127.0.0.1:0", (work_ / "served").native()});
  const std::string url = "http://" + server.wait_for("WebDav Server started on http://");
  std::ofstream(work_ / "rclone") << "[served]\ntype = webdav\nvendor = other\nurl = " << url << '\n';
  const std::vector<std::pair<fs::path, std::string>> copies{{work_ / "local", (work_ / "local").native()},
                                                             {work_ / "served" / "copy", "served:copy"}};
  const int last = rounds(3);
  for (int round = 0; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round > 0) change_and_scan();
    for (std::size_t at = 0; at < 2; ++at) {
      const std::string drive = node().drives[at].native();
      const auto copied = run_recipe("spoor-rclone", {drive, copies[at].second, "copy" + std::to_string(at)});
      EXPECT_EQ(copied.code, 0) << copied.err;
      EXPECT_EQ(copied.out.find("copies all of " + drive) != std::string::npos, round == 0) << copied.out;
      EXPECT_EQ(files_of(drive, at == 0), files_of(copies[at].first, at == 0));
    }
  }
}

TEST_P(RecipeRoundsTest, BorgFromFeed_EveryRound_RestoresEqualTheDrives) {
  SCOPED_TRACE(random_.trace());
  std::vector<std::string> init{"env"};
  for (const std::string& each : environment()) init.push_back(each);
  init.insert(init.end(), {"borg", "init", "--encryption", "repokey"});
  ASSERT_EQ(support::run_command(init).code, 0);
  const int last = rounds(1);
  for (int round = 0; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round > 0) change_and_scan();
    for (std::size_t at = 0; at < 2; ++at) {
      const std::string name = "disk" + std::to_string(at);
      const auto made = run_recipe("spoor-borg", {"backup", node().drives[at].native(), name});
      EXPECT_EQ(made.code, 0) << made.err;
      EXPECT_EQ(made.out.find("backs up all of") != std::string::npos, round == 0) << made.out;
      if (round < last && !random_.one_in(4)) continue;
      const fs::path restored = work_ / (name + '-' + std::to_string(round));
      const auto done = run_recipe("spoor-borg", {"restore", restored.native(), name});
      EXPECT_EQ(done.code, 0) << done.err;
      EXPECT_EQ(without_limits_of_backups(differences(node().drives[at], restored)), "");
    }
  }
}

TEST_P(RecipeRoundsTest, ResticFromFeed_EveryRound_RestoresEqualTheDrives) {
  SCOPED_TRACE(random_.trace());
  std::ofstream(work_ / "password") << "secret";
  make_restic_repository(work_ / "repository");
  const int last = rounds(2);
  for (int round = 0; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (round > 0) change_and_scan();
    for (std::size_t at = 0; at < 2; ++at) {
      const std::string name = "disk" + std::to_string(at);
      const auto made = run_recipe("spoor-restic", {"backup", node().drives[at].native(), name});
      EXPECT_EQ(made.code, 0) << made.err;
      EXPECT_EQ(made.out.find("backs up all of") != std::string::npos, round == 0) << made.out;
      if (round < last && !random_.one_in(8)) continue;
      const fs::path restored = work_ / (name + '-' + std::to_string(round));
      const auto done = run_recipe("spoor-restic", {"restore", restored.native(), name});
      EXPECT_EQ(done.code, 0) << done.err;
      EXPECT_EQ(without_limits_of_backups(differences(node().drives[at], restored)), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Locales, RecipeRoundsTest, support::Locales::all(), support::Locales::test_name);

}  // namespace
}  // namespace spoor::cluster
