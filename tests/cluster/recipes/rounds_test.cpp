// The recipes that copy and back up, over rounds of random changes on two drives, with the programs that they
// are for, and scans that are killed. SPOOR_RECIPE_ROUNDS sets how many.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>
#include <tuple>

#include "tests/cluster/recipes/programs.h"
#include "tests/support/locales.h"
#include "tests/support/random.h"
#include "tests/support/tree_writer.h"

namespace spoor::cluster {
namespace {

namespace fs = std::filesystem;

class RecipeRoundsTest : public RecipeTest,
                         public testing::WithParamInterface<std::tuple<std::string, const char*>> {
 protected:
  RecipeRoundsTest() : RecipeTest(2) {
    for (const fs::path& each : node().drives)
      writers_.emplace_back(random_, each, support::TreeOddities::all);
    for (support::TreeWriter& writer : writers_) writer.fill(15);
    scan();
  }

  void SetUp() override {
    RecipeTest::SetUp();
    use(std::get<0>(GetParam()), "repokey");
  }

  // So many as take some seconds.
  int rounds() const {
    const char* const set = std::getenv("SPOOR_RECIPE_ROUNDS");
    if (set != nullptr) return std::atoi(set);
    return std::map<std::string, int>{{"rsync", 8}, {"rclone", 3}, {"restic", 2}, {"borg", 1}}.at(program_);
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
    if (random_.one_in(2)) kill_a_scan();
    scan();
    cluster_.expect_truth(node());
  }

  void scan() { cluster_.scan(node(), 0, settings()); }

  // What a copy of a drive is made of and to.
  std::string consumer(std::size_t at) const { return "copy" + std::to_string(at); }
  fs::path copy_of(std::size_t at) const { return work_ / consumer(at); }

  support::CommandResult run_recipe(const std::vector<std::string>& arguments) {
    auto variables = locales_.environment(std::get<1>(GetParam()));
    for (const std::string& each : environment()) variables.push_back(each);
    return recipe("spoor-" + program_, arguments, variables, settings());
  }

  support::CommandResult copy(std::size_t at) {
    const std::string drive = node().drives[at];
    if (has_layers()) return run_recipe({"backup", drive, consumer(at)});
    // One copy of rclone's is a local directory, which has checksums; the other is behind WebDAV.
    const bool is_served = program_ == "rclone" && at == 1;
    return run_recipe({drive, is_served ? "served:" + consumer(at) : copy_of(at).native(), consumer(at)});
  }

  void expect_same(std::size_t at) {
    const fs::path& drive = node().drives[at];
    if (program_ == "rclone") {
      EXPECT_EQ(files_of(drive, at == 0), files_of(copy_of(at), at == 0));
    } else if (!has_layers()) {
      EXPECT_EQ(differences(drive, copy_of(at)), "");
    } else {
      fs::remove_all(copy_of(at));
      const auto done = run_recipe({"restore", copy_of(at).native(), consumer(at)});
      EXPECT_EQ(done.code, 0) << done.err;
      EXPECT_EQ(without_limits_of_backups(differences(drive, copy_of(at))), "");
    }
  }

  support::Random random_;
  std::vector<support::TreeWriter> writers_;

 private:
  // Of two, one that keeps the names of files.
  std::vector<std::string> settings() const {
    return std::get<1>(GetParam()) != std::string("C")
               ? std::vector<std::string>{"--set", "scan.file_feed=true"}
               : std::vector<std::string>();
  }

  // At some point of its life, its commit included.
  void kill_a_scan() {
    using std::chrono::steady_clock;
    std::vector<std::string> command{SPOOR, "--config", cluster_.config_of(node()).native(), "scan"};
    for (const std::string& each : settings()) command.push_back(each);
    support::Daemon scan(command);
    const auto end = steady_clock::now() + std::chrono::microseconds(random_.below(60'000));
    while (steady_clock::now() < end) std::this_thread::yield();
    scan.signal(SIGKILL);
    scan.wait();
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
      std::string& text = files[at->path().lexically_relative(top).native()];
      text = content(at->path());
      if (with_time) text += ' ' + std::to_string(at->last_write_time().time_since_epoch().count());
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

  support::Locales locales_;
};

TEST_P(RecipeRoundsTest, EveryRound_CopiesEqualTheDrives) {
  SCOPED_TRACE(random_.trace());
  const auto server = program_ == "rclone" ? serve_work() : nullptr;
  const int last = rounds();
  for (int round = 0; round <= last && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const bool is_checked = round == 0 || round == last;
    if (round > 0) change_and_scan();
    if (!is_checked && random_.one_in(4)) continue;  // more scans before the next copy
    for (std::size_t at = 0; at < 2; ++at) {
      // What comes after the scan may be copied, too, and be gone before the next one.
      const bool goes_on = !is_checked && random_.one_in(3);
      if (goes_on) writers_[at].change();
      const auto copied = copy(at);
      EXPECT_EQ(copied.code, 0) << copied.err;
      const std::string all =
          has_layers() ? "backs up all of" : "copies all of " + node().drives[at].native();
      EXPECT_EQ(copied.out.find(all) != std::string::npos, round == 0) << copied.out;
      EXPECT_TRUE(program_ != "rsync" || goes_on || copied.err.empty()) << copied.err;
      // A restore takes long.
      if (!goes_on && (!has_layers() || round == last || random_.one_in(6))) expect_same(at);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, RecipeRoundsTest,
                         testing::Combine(testing::Values("rsync", "rclone", "restic", "borg"),
                                          support::Locales::all()),
                         [](const auto& each) {
                           return std::get<0>(each.param) + '_' +
                                  support::Locales::test_name(testing::TestParamInfo<const char*>(
                                      std::get<1>(each.param), each.index));
                         });

}  // namespace
}  // namespace spoor::cluster
