// Subvolumes and snapshots of btrfs are made, changed, renamed and deleted on a watched drive: every scan
// finds all of it, by the marks of spoor-watch alone. SPOOR_WATCH_ROUNDS sets how many rounds.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t top_inode = 256;  // of each subvolume
constexpr std::size_t directories_max = 60;

int subvolume_rounds() {
  const char* const given = std::getenv("SPOOR_WATCH_ROUNDS");
  if (given != nullptr) return std::atoi(given);
  return support::is_sanitized ? 4 : 20;
}

class SubvolumesTest : public WatchTest {
 protected:
  void SetUp() override { mount(FileSystem::btrfs); }

  void btrfs(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"btrfs", "subvolume"});
    const auto result = support::run_command(arguments);
    ASSERT_EQ(result.code, 0) << result.err;
  }

  static struct stat status_of(const fs::path& path) {
    struct stat status{};
    EXPECT_EQ(::lstat(path.c_str(), &status), 0) << path;
    return status;
  }

  // All directories, those of Spoor left out; or the subvolumes below the drive only.
  std::vector<fs::path> directories(bool only_subvolumes = false) {
    std::vector<fs::path> found;
    if (!only_subvolumes) found.push_back(disk().path());
    auto at = fs::recursive_directory_iterator(disk().path());
    for (; at != fs::recursive_directory_iterator(); ++at) {
      if (at->path().filename() == ".spoor") at.disable_recursion_pending();
      if (!at->is_directory() || at->path().filename() == ".spoor") continue;
      // A snapshot has an empty stub for each subvolume in it.
      const auto inode = status_of(at->path()).st_ino;
      if (inode == 2 || (only_subvolumes && inode != top_inode)) continue;
      found.push_back(at->path());
    }
    return found;
  }

  fs::path new_path(support::Random& random) {
    const auto all = directories();
    return random.pick(all) / ("n" + std::to_string(++names_));
  }

  void change(support::Random& random) {
    const auto all = directories();
    const auto subvolumes = directories(true);
    const fs::path some = random.pick(all);
    switch (random.below(subvolumes.empty() ? 4 : 8)) {
      case 0:
        if (all.size() < directories_max) return btrfs({"create", new_path(random)});
        return;
      case 1:
        fs::create_directory(new_path(random));
        return;
      case 2:
      case 3:
        std::ofstream(some / ("f" + std::to_string(random.below(4))), std::ios::app) << "written";
        return;
      case 4:
        if (all.size() < directories_max)
          return btrfs({"snapshot", random.pick(subvolumes), new_path(random)});
        return;
      case 5:
        fs::remove_all(random.pick(subvolumes));
        return;
      case 6:
        return exchange(random.pick(subvolumes), random.pick(subvolumes));
      default:
        return replace_by_snapshot(random.pick(subvolumes), random.pick(subvolumes));
    }
  }

  // Their names: nothing else tells that they changed.
  void exchange(const fs::path& one, const fs::path& other) {
    if (one.parent_path() != other.parent_path() || one == other) return;
    const fs::path aside = one.parent_path() / "aside";
    fs::rename(one, aside);
    fs::rename(other, one);
    fs::rename(aside, other);
  }

  void replace_by_snapshot(const fs::path& replaced, const fs::path& of) {
    if ((of.native() + '/').starts_with(replaced.native() + '/')) return;
    fs::remove_all(replaced);
    btrfs({"snapshot", of, replaced});
  }

 private:
  int names_ = 0;
};

TEST_F(SubvolumesTest, RandomChanges_EveryScan_FindsThemAll) {
  SPOOR_RANDOM(random);
  start(disk().path());
  for (int round = 0; round < subvolume_rounds() && !HasFailure(); ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    for (std::uint64_t count = random.between(1, 5); count > 0; --count) change(random);
    expect_truth();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
  }
}

}  // namespace
}  // namespace spoor::watch
