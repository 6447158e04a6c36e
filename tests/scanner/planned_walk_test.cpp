// What is marked below a directory is planned before that is read: which plans hold, and what becomes of
// others.
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "tests/scanner/scanned_node.h"
#include "tests/support/file_times.h"

namespace spoor::scanner {
namespace {

using Paths = std::multiset<std::string>;

class PlannedWalkTest : public ScannedNode, public ::testing::WithParamInterface<std::size_t> {
 protected:
  PlannedWalkTest() {
    options.threads = GetParam();
    clock.set_wall(reader.clock.wall_now());
    for (const char* path : {"a/file", "a/b/file", "a/b/c/d/file", "a/b/e/file", "a/x/file", "z/file"})
      make_file(path);
    scan();
    support::outlast_timestamp_step();
  }

  void change(const std::string& path, std::size_t bytes = 100) {
    make_file(path, bytes);
    mark(path);
  }

  // Each is read once, whatever was planned, and nothing else but the root.
  void expect_read(Paths expected) {
    reader.read_paths.clear();
    scan();
    expected.insert("");
    EXPECT_EQ(reader.read_paths, expected);
    expect_exact();
  }
};

TEST_P(PlannedWalkTest, ChangedFilesBesideSubdirectories_KeepThePlan) {
  change("a/b/file");
  change("a/b/c/d/file");
  expect_read({"a", "a/b", "a/b/c", "a/b/c/d"});
}

TEST_P(PlannedWalkTest, NewAndRemovedSubdirectories_DropThePlanButNotWhatWasRead) {
  change("a/b/c/d/file");
  change("a/b/new/file");
  remove("a/b/e");
  mark("a/b/e", tracker::MarkKind::tree);
  expect_read({"a", "a/b", "a/b/c", "a/b/c/d", "a/b/new"});
}

TEST_P(PlannedWalkTest, AnotherDirectoryInItsPlace_IsReadWithAllBelow) {
  rename("a/b", "a/was");
  for (const char* path : {"a/b/file", "a/b/c/d/file", "a/b/e/file"}) make_file(path, 50);
  mark("a/b", tracker::MarkKind::tree);
  mark("a/was", tracker::MarkKind::tree);
  expect_read({"a", "a/b", "a/b/c", "a/b/c/d", "a/b/e", "a/was", "a/was/c", "a/was/c/d", "a/was/e"});
}

TEST_P(PlannedWalkTest, PlannedDirectoriesAreGone) {
  change("a/b/c/d/file");
  change("a/b/e/file");
  remove("a/b");
  mark("a/b", tracker::MarkKind::tree);
  expect_read({"a"});
}

// As the top directory of a btrfs subvolume has.
TEST_P(PlannedWalkTest, InodesUnlikeThoseListed_DropThePlan) {
  reader.inodes_unlike_listed = true;
  change("a/b/c/d/file");
  change("a/b/e/file");
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

// The newest time of a directory and of those above it was that of a file that is gone.
TEST_P(PlannedWalkTest, NewestFileIsGone_OlderTimesCount) {
  const auto later = std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  make_file("a/b/newest", 10);
  std::filesystem::last_write_time(on_drive("a/b/newest"), later);
  mark("a/b/newest");
  scan();
  expect_exact();
  remove("a/b/newest");
  mark("a/b/newest");
  expect_read({"a", "a/b"});
}

TEST_P(PlannedWalkTest, UnreadableDirectory_LeavesWhatWasPlannedBelowIt) {
  change("a/b/c/d/file");
  reader.list_errors["a/b"] = EACCES;
  EXPECT_EQ(scan().record.errors, 1U);
  EXPECT_FALSE(is_complete("a/b"));
  reader.repair();
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

TEST_P(PlannedWalkTest, FilesTooLargeToSumUp_AreNotSubtractedFrom) {
  change("a/b/file");
  change("a/b/c/d/file");
  reader.own_bytes["a/b"] = sum_max;
  scan();
  EXPECT_EQ(usage("a/b")->total.bytes, sum_max);
  reader.own_bytes.clear();
  change("a/b/file");
  scan();
  expect_exact();
}

// More than may be due at once, on several levels, which are read or known.
TEST_P(PlannedWalkTest, ManyMarkedInManyDirectories_AreReadOnce) {
  const auto name = [](int number) {
    return "many/" + std::to_string(number / 20) + "/" + std::to_string(number);
  };
  for (int number = 0; number < 600; ++number) make_file(name(number) + "/file");
  mark("many", tracker::MarkKind::tree);
  scan();
  support::outlast_timestamp_step();
  for (const bool is_way_known : {false, true}) {
    reader.changes_times = is_way_known;
    Paths expected;
    for (int number = 0; number < 600; number += 2) {
      change(name(number) + "/file", is_way_known ? 50 : 100);
      expected.insert(name(number));
    }
    if (!is_way_known) {
      for (int top = 0; top < 30; ++top) expected.insert("many/" + std::to_string(top));
      expected.insert("many");
    }
    expect_read(expected);
  }
}

TEST_P(PlannedWalkTest, StoppedAndResumed_ReadsTheRest) {
  for (const char* path : {"a/file", "a/b/file", "a/b/c/d/file", "a/b/e/file", "z/file"}) change(path);
  EXPECT_TRUE(stop_at("a/b/c/d"));
  resumes = true;
  scan();
  expect_exact();
}

INSTANTIATE_TEST_SUITE_P(Threads, PlannedWalkTest, ::testing::Values(1, 4));

}  // namespace
}  // namespace spoor::scanner
