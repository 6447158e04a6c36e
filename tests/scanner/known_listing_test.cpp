// Directories on the way to a change: when their listings are known, and when they are read.

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/scanner/scanned_node.h"
#include "tests/support/file_times.h"

namespace spoor::scanner {
namespace {

using Paths = std::multiset<std::string>;

class KnownListingTest : public ScannedNode, public ::testing::WithParamInterface<std::size_t> {
 protected:
  KnownListingTest() {
    options.threads = GetParam();
    clock.set_wall(reader.clock.wall_now());
    reader.changes_times = true;
    for (const char* leaf : {"a/b/c", "a/b/d", "a/x/c", "z/c"}) make_file(std::string(leaf) + "/file");
    scan();
    support::outlast_timestamp_step();
  }

  // What is read beside the root if the file in a/b/c changes.
  Paths read_for_a_change() {
    make_file("a/b/c/file", bytes_ += 10);
    mark("a/b/c/file");
    reader.read_paths.clear();
    scan();
    EXPECT_EQ(totals_found(), totals_stored());
    Paths read = reader.read_paths;
    read.erase("");
    return read;
  }

  std::uint64_t totals_found() { return measure({drive()}).at("").bytes; }
  std::uint64_t totals_stored() { return stored_bytes(""); }
  std::uint64_t stored_bytes(const std::string& path) { return usage(path)->total.bytes; }

  const Paths leaf_only{"a/b/c"};
  const Paths whole_way{"a", "a/b", "a/b/c"};

 private:
  std::size_t bytes_ = 10;
};

TEST_P(KnownListingTest, Way_IsNeitherOpenedNorListed) {
  EXPECT_EQ(read_for_a_change(), leaf_only);
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

TEST_P(KnownListingTest, FileSystemWithoutSuchTimes_IsRead) {
  reader.changes_times = false;
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, NoTimeOfCreation_IsRead) {
  reader.without_birth = true;
  scan_everything();
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, DirectoryWithFile_IsRead) {
  make_file("a/b/file");
  mark("a/b/file");
  scan();
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c"}));
}

TEST_P(KnownListingTest, OtherEntries_AreRead) {
  make_directory("a/b/new");
  mark("a/b/new");
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c", "a/b/new"}));
  support::outlast_timestamp_step();
  rename("a/b/new", "a/b/other");
  mark("a/b/new", tracker::MarkKind::tree);
  mark("a/b/other", tracker::MarkKind::tree);
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c", "a/b/other"}));
  support::outlast_timestamp_step();
  remove("a/b/other");
  mark("a/b/other");
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c"}));
}

TEST_P(KnownListingTest, EntryAddedAndTimeSetBack_IsRead) {
  const auto time = std::filesystem::last_write_time(on_drive("a/b"));
  make_directory("a/b/new");
  std::filesystem::last_write_time(on_drive("a/b"), time);
  mark("a/b/new");
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c", "a/b/new"}));
}

TEST_P(KnownListingTest, AnotherDirectoryInItsPlace_IsReadWithAllBelow) {
  rename("a/b", "was");
  for (const char* leaf : {"a/b/c", "a/b/d"}) make_file(std::string(leaf) + "/file", 1000);
  mark("a/b", tracker::MarkKind::tree);
  mark("was", tracker::MarkKind::tree);
  EXPECT_EQ(read_for_a_change(), (Paths{"a", "a/b", "a/b/c", "a/b/d", "was", "was/c", "was/d"}));
}

TEST_P(KnownListingTest, TreeMark_ReadsAllBelow) {
  mark("a/b", tracker::MarkKind::tree);
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c", "a/b/d"}));
}

TEST_P(KnownListingTest, LinkToItInItsPlace_IsRead) {
  rename("a/b", "was");
  std::filesystem::create_directory_symlink(on_drive("was"), on_drive("a/b"));
  mark("a/b", tracker::MarkKind::tree);
  mark("was", tracker::MarkKind::tree);
  scan();
  EXPECT_EQ(totals_found(), totals_stored());
}

TEST_P(KnownListingTest, MountPointOnTheWay_IsNotPassed) {
  reader.mount_points.insert("a/b");
  make_file("a/b/c/file", 500);
  mark("a/b/c/file");
  scan();
  EXPECT_EQ(stored_bytes("a/b"), 0U);
  reader.mount_points.clear();
  EXPECT_EQ(read_for_a_change(), (Paths{"a", "a/b", "a/b/c", "a/b/d"}));
}

TEST_P(KnownListingTest, ClockSetBack_IsRead) {
  clock.set_wall(clock.wall_now() - std::chrono::minutes(5));
  EXPECT_EQ(read_for_a_change(), whole_way);
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

// Seen against the steady clock only.
TEST_P(KnownListingTest, ClockSetBackLongAfterScan_IsRead) {
  clock.advance(std::chrono::hours(1));
  clock.set_wall(clock.wall_now() - std::chrono::minutes(5));
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, MachineStarted_IsRead) {
  // As it is ahead of a steady clock that began anew.
  clock.set_wall(clock.wall_now() + std::chrono::hours(3));
  EXPECT_EQ(read_for_a_change(), whole_way);
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

TEST_P(KnownListingTest, RacySignature_IsRead) {
  make_directory("a/b/new");
  mark("a/b/new");
  const auto settled = reader.clock.wall_now();
  reader.clock.set_wall(base::FileTimeClock().wall_now());
  scan();
  reader.clock.set_wall(settled);
  EXPECT_EQ(read_for_a_change(), (Paths{"a/b", "a/b/c"}));
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

TEST_P(KnownListingTest, DriftBeyondHalfAMinute_IsRead) {
  clock.advance(std::chrono::hours(24));
  clock.set_wall(clock.wall_now() + std::chrono::seconds(31));
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, ClockThatRunsFast_IsNotSetBack) {
  clock.advance(std::chrono::hours(1));
  clock.set_wall(clock.wall_now() + std::chrono::seconds(2));
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

TEST_P(KnownListingTest, ChangedInTheMinuteBeforeLastScan_IsRead) {
  clock.set_wall(base::SystemClock().wall_now() + std::chrono::seconds(30));
  EXPECT_EQ(read_for_a_change(), whole_way);  // the clock was set
  EXPECT_EQ(read_for_a_change(), whole_way);
  clock.set_wall(base::SystemClock().wall_now() + std::chrono::minutes(3));
  EXPECT_EQ(read_for_a_change(), whole_way);  // likewise
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

// Its time of modification can be set, but not that of the change of its inode.
TEST_P(KnownListingTest, ChangedInThatMinuteWithTimeSetBack_IsRead) {
  for (const char* path : {"a/b", "a", ""}) {
    const auto on_disk = on_drive(path);
    std::filesystem::last_write_time(on_disk,
                                     std::filesystem::last_write_time(on_disk) - std::chrono::hours(1));
  }
  clock.set_wall(base::SystemClock().wall_now() + std::chrono::seconds(30));
  EXPECT_EQ(read_for_a_change(), whole_way);  // the clock was set
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, PartialScan_DoesNotSettleTimes) {
  clock.set_wall(base::SystemClock().wall_now() + std::chrono::seconds(30));
  scan();
  clock.advance(std::chrono::minutes(10));
  partial = true;
  scan();
  partial = false;
  EXPECT_EQ(read_for_a_change(), whole_way);
  EXPECT_EQ(read_for_a_change(), leaf_only);
}

// It began by a clock that was set back before it was resumed.
TEST_P(KnownListingTest, ResumedScan_DoesNotSettleTimes) {
  options.threads = 1;  // others may begin the last one before anything is committed
  const auto now = base::SystemClock().wall_now();
  clock.set_wall(now + std::chrono::hours(1));
  scan();
  resumes = true;
  mark("a/b/c/file");
  ASSERT_TRUE(stop_at("a/b/c"));
  clock.set_wall(now);
  scan();
  EXPECT_TRUE(has_resumed);
  resumes = false;
  clock.advance(std::chrono::hours(2));
  EXPECT_EQ(read_for_a_change(), whole_way);
}

TEST_P(KnownListingTest, AuditedDirectory_IsRead) {
  options.audit_period = std::chrono::hours(24);
  EXPECT_EQ(read_for_a_change(), leaf_only);
  clock.advance(std::chrono::hours(24));
  const Paths read = read_for_a_change();
  EXPECT_EQ(read.count("a"), 1U);
  EXPECT_EQ(read.count("a/b"), 1U);
}

TEST_P(KnownListingTest, DirectoryMovedDuringTheWalk_IsLeftForTheNext) {
  reader.before_read = [&](std::string_view path) {
    if (path.empty()) rename("a/b", "elsewhere");
  };
  make_file("a/b/c/file", 70);
  mark("a/b/c/file");
  scan();
  reader.before_read = nullptr;
  rename("elsewhere", "a/b");
  scan();
  EXPECT_EQ(totals_found(), totals_stored());
}

// Another directory is there, with the names of the one that was moved, and that one comes back without a
// mark.
TEST_P(KnownListingTest, DirectoryReplacedDuringTheWalk_IsLeftForTheNext) {
  for (const char* leaf : {"other/c", "other/d"}) make_file(std::string(leaf) + "/file", 500);
  mark("other", tracker::MarkKind::tree);
  scan();
  std::atomic<bool> was_known = false;
  reader.after_look = [&](std::string_view path) {
    if (path != "a/b") return;
    was_known = true;
    was_known.notify_all();
  };
  bool is_replaced = false;
  reader.before_read = [&](std::string_view path) {
    if (path != "a/b/c" || std::exchange(is_replaced, true)) return;
    was_known.wait(false);  // another thread may read it earlier
    rename("a/b", "elsewhere");
    rename("other", "a/b");
  };
  for (const char* leaf : {"a/b/c", "a/b/d"}) {
    make_file(std::string(leaf) + "/file", 70);
    mark(leaf);
  }
  const ScanReport report = scan();
  reader.before_read = nullptr;
  reader.after_look = nullptr;
  EXPECT_TRUE(is_replaced);
  if (options.threads == 1) {
    EXPECT_EQ(report.record.errors, 1U);  // a/b/d
  }
  rename("a/b", "other");
  rename("elsewhere", "a/b");
  scan();
  EXPECT_EQ(totals_found(), totals_stored());
}

INSTANTIATE_TEST_SUITE_P(Threads, KnownListingTest, ::testing::Values(1, 3));

}  // namespace
}  // namespace spoor::scanner
