// What ordinary programs change on a watched drive, from round to round: every scan must find all of it by
// the marks of spoor-watch alone. SPOOR_WATCH_ROUNDS sets how many rounds.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iostream>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "base/printable.h"
#include "tests/support/process.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/watch/changed_tree.h"
#include "tests/watch/eventually.h"
#include "tests/watch/tree_snapshot.h"
#include "tests/watch/watch_fixture.h"

namespace spoor::watch {
namespace {

namespace fs = std::filesystem;

int round_count() {
  const char* const given = std::getenv("SPOOR_WATCH_ROUNDS");
  if (given != nullptr) return std::atoi(given);
  return support::is_sanitized ? 4 : 12;
}

struct Watched {
  FileSystem type;
  // The drive is a directory of the file system, beside others; a second mount shows it, too.
  bool is_part;
};

std::string name_of(const Watched& watched) {
  return watch::name_of(watched.type) + (watched.is_part ? "_part" : "");
}

void PrintTo(const Watched& watched, std::ostream* out) { *out << name_of(watched); }

bool is_installed(const std::string& program) {
  return program.empty() || support::run_command({"sh", "-c", "command -v \"$1\"", "sh", program}).code == 0;
}

// All of them that can be made here: whose program is installed, and on such a drive. Prints the others.
std::vector<Change> available_changes(const ChangedPlaces& places) {
  std::vector<std::vector<Change>> sources{shell_changes(), call_changes()};
  if (!places.beside.empty()) sources.push_back(border_changes());
  std::vector<Change> available;
  for (const auto& source : sources) {
    for (const Change& change : source) {
      if (is_installed(change.program)) {
        available.push_back(change);
      } else {
        std::cout << "[ LEFT OUT ] " << change.name << ": " << change.program << " is not installed\n";
      }
    }
  }
  return available;
}

class RoundsTest : public WatchTest, public testing::WithParamInterface<Watched> {
 protected:
  void SetUp() override {
    mount(GetParam().type);
    if (IsSkipped()) return;
    places_ = {.drive = disk().path(), .scratch = directory_ / "scratch"};
    fs::create_directory(places_.scratch);
    if (!GetParam().is_part) return;
    places_ = {.drive = disk().path() / "drive",
               .scratch = places_.scratch,
               .beside = disk().path() / "beside",
               .alias = directory_ / "alias"};
    for (const fs::path& each : {places_.drive, places_.beside}) fs::create_directory(each);
    alias_.emplace(places_.alias);
    alias_->mount_directory(places_.drive);
  }

  void change(ChangedTree& tree, const std::vector<Change>& changes) {
    done_.clear();
    for (std::uint64_t count = tree.random().between(1, 4); count > 0; --count) {
      const Change& chosen = tree.random().pick(changes);
      const std::string changed = chosen.make(tree);
      done_ += "  " + chosen.name + ": " + base::printable(changed) + '\n';
    }
  }

  // The change feed since the scan before, beside two snapshots.
  void expect_changes(std::uint64_t since, const TreeSnapshot& before, const TreeSnapshot& after) {
    const auto listed = node().changes_since(since);
    for (const std::string& path : changed_directories(before, after)) {
      EXPECT_TRUE(listed.contains(path)) << "not in the feed: '" << base::printable(path) << "'";
    }
    const auto deleted = node().changes_since(since, true);
    for (const std::string& path : removed_directories(before, after)) {
      bool is_listed = false;
      for (fs::path above = path; !above.empty() && !is_listed; above = above.parent_path())
        is_listed = deleted.contains(above.native());
      EXPECT_TRUE(is_listed) << "not in the feed of deletions: '" << base::printable(path) << "'";
    }
  }

  void expect_directory_totals(const TreeSnapshot& tree) {
    const auto usage = node().directory_usage();
    const auto truth = directory_totals(tree);
    for (const auto& [path, totals] : truth) {
      const auto found = usage.find(path);
      ASSERT_NE(found, usage.end()) << "no totals of '" << base::printable(path) << "'";
      EXPECT_EQ(found->second, totals) << "in '" << base::printable(path) << "'";
    }
    EXPECT_EQ(usage.size(), truth.size());
  }

  ChangedPlaces places_;
  std::string done_;  // the changes of this round
  std::optional<faults::MountPoint> alias_;
};

TEST_P(RoundsTest, ChangesByAnyProgram_EveryScan_FindsThemAll) {
  SPOOR_RANDOM(random);
  ChangedTree tree(random, places_);
  const auto changes = available_changes(places_);
  for (int count = 0; count < 10; ++count) tree.fill(tree.new_path());
  start(places_.drive);
  tree.set_pause([this] { node().synchronise(); });
  TreeSnapshot before = take_snapshot(places_.drive);
  for (int round = 0; round < round_count() && !HasFailure(); ++round) {
    const auto since = last_scan_["scan"].get<std::uint64_t>();
    tree.prune();
    change(tree, changes);
    SCOPED_TRACE("round " + std::to_string(round) + '\n' + done_);
    expect_truth();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
    TreeSnapshot after = take_snapshot(places_.drive);
    expect_changes(since, before, after);
    expect_directory_totals(after);
    before = std::move(after);
  }
}

// Without a mark below it, a scan reads the top only for the mark of an entry there.
TEST_P(RoundsTest, ChangesInTheTopAlone_AreFound) {
  const fs::path top = places_.drive;
  start(top);
  const std::vector<std::function<void()>> changes{
      [&] { std::ofstream(top / "file") << "created"; },
      [&] { std::ofstream(top / "file", std::ios::app) << "appended"; },
      [&] { fs::rename(top / "file", top / "renamed"); },
      [&] { fs::resize_file(top / "renamed", 5000); },
      [&] { fs::create_directory(top / "directory"); },
      [&] { fs::rename(top / "directory", top / "moved"); },
      [&] { fs::remove(top / "moved"); },
      [&] { fs::create_symlink("target", top / "link"); },
      [&] { fs::remove(top / "renamed"); }};
  for (std::size_t number = 0; number < changes.size() && !HasFailure(); ++number) {
    changes[number]();
    const auto truth = support::walk_independently({top});
    last_scan_ = node().scan();
    EXPECT_EQ(node().usage(), truth) << "change " << number << ' ' << last_scan_;
    EXPECT_EQ(last_scan_["mode"], "incremental");
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
  }
}

// A file's times, rights and owner alone.
TEST_P(RoundsTest, AttributesAlone_AreMarked) {
  const fs::path file = places_.drive / "directory/file";
  fs::create_directory(file.parent_path());
  std::ofstream(file) << "content";
  start(places_.drive);
  const std::vector<std::function<void()>> changes{
      [&] { fs::last_write_time(file, fs::last_write_time(file) - std::chrono::hours(1)); },
      [&] { fs::permissions(file, fs::perms::owner_read); },
      [&] { ASSERT_EQ(::chown(file.c_str(), 1234, 1234), 0); }};
  for (std::size_t number = 0; number < changes.size() && !HasFailure(); ++number) {
    const auto since = last_scan_["scan"].get<std::uint64_t>();
    changes[number]();
    expect_truth();
    EXPECT_TRUE(node().changes_since(since).contains("directory")) << "change " << number << last_scan_;
  }
}

// A descriptor keeps the name with which it was opened, and the kernel reports that one.
TEST_P(RoundsTest, WriteByADescriptorWhoseNameIsGone_IsMarked) {
  const fs::path drive = places_.drive;
  for (const char* const name : {"first", "second"}) fs::create_directory(drive / name);
  start(drive);
  const base::Descriptor linked(::open((drive / "first/old").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  fs::create_hard_link(drive / "first/old", drive / "second/new");
  fs::remove(drive / "first/old");
  const base::Descriptor unnamed(::open((drive / "first").c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
  const std::string unnamed_path = "/proc/self/fd/" + std::to_string(unnamed.get());
  ASSERT_EQ(
      ::linkat(AT_FDCWD, unnamed_path.c_str(), AT_FDCWD, (drive / "second/named").c_str(), AT_SYMLINK_FOLLOW),
      0);
  // As long as these are open, the kernel knows the names.
  const base::Descriptor known_new(::open((drive / "second/new").c_str(), O_PATH | O_CLOEXEC));
  const base::Descriptor known_named(::open((drive / "second/named").c_str(), O_PATH | O_CLOEXEC));
  const base::Descriptor removed(::open((drive / "first/temporary").c_str(), O_CREAT | O_WRONLY, 0600));
  fs::remove(drive / "first/temporary");
  expect_truth();
  for (const base::Descriptor* const each : {&linked, &unnamed, &removed, &linked}) {
    ChangedTree::write_to(*each, "more");
    expect_truth();
    EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
  }
}

// On ext4, open_by_handle_at(2) fails with ENOMEM for a removed directory whose inode is about to be given to
// a new one.
TEST_P(RoundsTest, RemovedDirectories_WithReusedInodes_AreNoGap) {
  constexpr int directories = 64;
  start(places_.drive);
  const auto name = [this](int number) { return places_.drive / ("churn" + std::to_string(number)); };
  for (int round = 0; round < 100; ++round) {
    for (int number = 0; number < directories; ++number) {
      fs::create_directory(name(number));
      std::ofstream(name(number) / "file") << number;
    }
    for (int number = 0; number < directories; ++number) fs::remove_all(name(number));
  }
  expect_truth();
  EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
}

TEST_P(RoundsTest, FilesReplacedByRenames_AreNoGap) {
  start(places_.drive);
  for (int round = 0; round < 3000; ++round) {
    std::ofstream(places_.drive / "new") << round;
    fs::rename(places_.drive / "new", places_.drive / "file");
  }
  expect_truth();
  EXPECT_TRUE(drive_gaps(last_scan_).empty()) << last_scan_;
}

// The limit that docs/usage.md describes under "Hard links".
TEST_P(RoundsTest, LinkInAnotherDirectory_CountsTwiceUntilTheFirstIsRead) {
  constexpr std::uint64_t size = 1000;
  fs::create_directories(places_.drive / "first");
  fs::create_directories(places_.drive / "second");
  std::ofstream(places_.drive / "first/name") << std::string(size, 'x');
  start(places_.drive);
  fs::create_hard_link(places_.drive / "first/name", places_.drive / "second/name");
  EXPECT_EQ(node().scan()["mode"], "incremental");
  const auto truth = support::walk_independently({places_.drive});
  EXPECT_EQ(node().usage().files, truth.files);
  EXPECT_EQ(node().usage().bytes, truth.bytes + size) << "the kernel names only the new link";

  std::ofstream(places_.drive / "first/other") << "a change in the first directory";
  expect_truth();
}

INSTANTIATE_TEST_SUITE_P(FileSystems, RoundsTest,
                         testing::Values(Watched{FileSystem::ext4, false}, Watched{FileSystem::xfs, false},
                                         Watched{FileSystem::btrfs, false}, Watched{FileSystem::tmpfs, false},
                                         Watched{FileSystem::ext4, true}),
                         [](const auto& each) { return name_of(each.param); });

}  // namespace
}  // namespace spoor::watch
