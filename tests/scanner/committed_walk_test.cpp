// A scan commits what it walked: what others see meanwhile, and what becomes of it if nobody resumes the
// scan.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "scanner/feed/change_feed.h"
#include "scanner/store/directory_store.h"
#include "scanner/walk/unfinished_scan.h"
#include "tests/scanner/feed_copies.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using tracker::MarkKind;

class CommittedWalkTest : public ScannedNode {
 protected:
  explicit CommittedWalkTest(std::vector<std::string> drives = {"drive"}) : ScannedNode(std::move(drives)) {
    trust_times();
    resumes = true;  // which commits at each step
    adjust_input = [this](ScanInput& input) { EXPECT_EQ(input.is_resumed, has_resumed); };
  }

  void make_tree() {
    for (const char* path : {"a/f", "a/b/f", "a/b/c/f", "a/b/d/f", "a/e/f", "g/f", "g/h/f", "k/f", "k/l/m/f"})
      make_file(path);
  }

  // Of each directory, with all below it, as they are stored.
  static void expect_sums(DirectoryTables& store, const DirectoryRow& row, const std::string& path) {
    DirectoryRow sum = row;
    sum.restart_sums(row.own);
    ChildRows children(store, row.id);
    for (; const DirectoryRow* const child = children.peek(); children.pop()) {
      sum.add_child(*child);
      expect_sums(store, *child, path + '/' + child->name);
    }
    EXPECT_LE(sum.subtree.mtime_ns, row.subtree.mtime_ns) << path;
    if (row.state != DirectoryState::ok) sum.subtree.mtime_ns = row.subtree.mtime_ns;
    EXPECT_EQ(sum, row) << path;
  }

  // By another process, so to say.
  void expect_sums() {
    auto seen = UsageDatabase::open_read_only(file());
    ASSERT_TRUE(seen) << seen.error().message;
    DirectoryTables store(seen->handle());
    if (const auto root = store.find(DirectoryStore::parent_of_root(1), "")) expect_sums(store, *root, "");
    ++looks;
  }

  // What prepare() made of the drive is scanned, stopped at each of its reads, and never resumed; check()
  // follows the next scan.
  void expect_exact_after_any_stop(
      const std::function<void()>& prepare, const std::function<void()>& after,
      const std::function<void()>& check = [] {}) {
    for (std::uint64_t reads = 0;; ++reads) {
      SCOPED_TRACE("stopped after " + std::to_string(reads) + " reads");
      clear_drive();
      make_tree();
      scan_everything();
      prepare();
      const bool was_stopped = !scan_killed_after(reads);
      forget_input();
      after();
      scan();
      EXPECT_FALSE(has_resumed);
      expect_exact();
      check();
      if (HasFailure() || !was_stopped) return;
    }
  }

  void scan_with_stamp() {
    lose_stamp();
    stamp_drive = [](const std::filesystem::path& drive, const std::string& stamp,
                     const std::string& before) {
      std::ofstream(drive / ".spoor/last-scan") << stamp << ' ' << before << '\n';
      return true;
    };
    scan();
  }

  // As if the drive had been rolled back.
  void lose_stamp() { write_file(on_drive(".spoor/last-scan"), 0); }

  // As if options had changed that no test here changes.
  void forget_input() { database->handle().exec("DELETE FROM settings WHERE key = 'unfinished_input'"); }

  int looks = 0;
};

TEST_F(CommittedWalkTest, EachCommit_TotalsAreSums) {
  make_tree();
  reader.before_read = [this](std::string_view) { expect_sums(); };
  scan();
  EXPECT_GE(looks, 11);
  make_file("a/b/c/f", 100);
  make_file("a/b/new/f", 1000);
  remove("a/b/d");
  remove("g/f");
  make_file("k/l/m/f", 1);
  rename("k", "b");
  for (const char* path : {"a/b/c/f", "a/b/new", "a/b/d", "g/f", "k", "b"}) mark(path);
  scan();
  expect_exact();
  expect_sums();
}

TEST_F(CommittedWalkTest, NewestFileIsGone_TimesAreExactAfterAStop) {
  const auto newest = std::filesystem::file_time_type::clock::now() + std::chrono::hours(1);
  const auto prepare = [&] {
    std::filesystem::last_write_time(on_drive("a/b/c/f"), newest);
    mark("a/b/c/f");
    scan();
    remove("a/b/c/f");
    make_file("a/e/f", 50);
    make_file("k/f", 50);
    for (const char* path : {"a/b/c/f", "a/e/f", "k/f"}) mark(path);
  };
  expect_exact_after_any_stop(prepare, [] {});
}

TEST_F(CommittedWalkTest, MarkedDirectories_AreMarkedInTheNextScan) {
  const auto prepare = [&] {
    make_file("a/b/c/f", 100);
    rename("a/b/d", "g/d");
    make_file("new/one/f");
    make_file("k/f", 50);
    for (const char* path : {"a/b/c/f", "a/b/d", "g/d", "k/f"}) mark(path);
    mark("new", MarkKind::tree);
  };
  expect_exact_after_any_stop(prepare, [] {});
}

// No mark leads to what is below it.
TEST_F(CommittedWalkTest, NewDirectoryHalfWalked_IsWalkedByTheNextScan) {
  const auto prepare = [&] {
    rename("a", "new");
    mark("a");
    mark("new");
  };
  expect_exact_after_any_stop(prepare, [] {});
}

// It has the inode number of the one that was there, and no time of creation: nothing proves that it is
// another.
TEST_F(CommittedWalkTest, DirectoryThatMayBeAnotherHalfWalked_IsWalkedByTheNextScan) {
  reader.reuses_inodes = reader.without_birth = true;
  const auto prepare = [&] {
    const auto ctime_ns = [&] { return reader.open_drive(on_drive("a"))->ctime_ns; };
    const std::int64_t before = ctime_ns();
    remove("a");
    for (const char* path : {"a/f", "a/b/f", "a/b/c/f", "a/b/d/f", "a/e/f"}) make_file(path, 50);
    while (ctime_ns() == before) {
      rename("a", "aside");
      rename("aside", "a");
    }
    mark("a");
  };
  expect_exact_after_any_stop(prepare, [] {});
}

TEST_F(CommittedWalkTest, UnreadDirectoryHalfWalked_IsWalkedByTheNextScan) {
  const auto prepare = [&] {
    reader.list_errors["a"] = EIO;
    make_file("a/b/c/f", 100);
    make_file("a/e/f", 100);
    mark("a", MarkKind::tree);
    scan();
    reader.repair();
  };
  expect_exact_after_any_stop(prepare, [] {});
}

TEST_F(CommittedWalkTest, RulesChangedAndBack_AllIsWalked) {
  const auto rules = options.rules;
  const auto prepare = [&] { options.rules = tracker::NamespaceRules({{"f"}, false}); };
  expect_exact_after_any_stop(prepare, [&] { options.rules = rules; });
}

TEST_F(CommittedWalkTest, OwnersSwitchedOn_AllAreKnown) {
  const auto prepare = [&] {
    options.owners_depth.reset();
    scan();
    options.owners_depth = 2;
  };
  expect_exact_after_any_stop(prepare, [] {});
}

TEST_F(CommittedWalkTest, FileFeedSwitchedOn_AllFilesAreKnown) {
  const auto prepare = [&] {
    options.file_feed = false;
    scan();
    options.file_feed = true;
  };
  const auto check = [&] {
    FileCopy copy;
    copy.follow(*database, {drive()});
    copy.expect_same({drive()});
  };
  expect_exact_after_any_stop(prepare, [] {}, check);
}

TEST_F(CommittedWalkTest, DriveReplaced_ConsumersStartOver) {
  FeedCopies copies;
  const auto prepare = [&] {
    give_identity(0, '1');
    scan();
    copies.follow(*database, {drive()});
    make_file("a/another");
    remove("g");
    give_identity(0, '2');
  };
  const auto check = [&] {
    copies.follow(*database, {drive()});
    copies.expect_same({drive()});
  };
  expect_exact_after_any_stop(prepare, [] {}, check);
}

TEST_F(CommittedWalkTest, UnfinishedScan_IsNoScanToReaders) {
  make_tree();
  scan();
  make_file("a/b/c/f", 100);
  mark("a/b/c/f");
  mark("k/l/m");
  const auto latest = latest_scan(*database).value();
  ASSERT_FALSE(scan_killed_after(4));
  EXPECT_TRUE(database->setting(unfinished_key).value());
  EXPECT_EQ(latest_scan(*database).value(), latest);
  EXPECT_EQ(usage("")->total.bytes, 9U * 10 + 90) << "what was walked is shown";
  EXPECT_TRUE(usage("")->is_scanning);
  scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_FALSE(usage("")->is_scanning);
  EXPECT_FALSE(database->setting(unfinished_key).value());
  EXPECT_FALSE(database->setting(unfinished_input_key).value());
  expect_exact();
}

TEST_F(CommittedWalkTest, DamagedProgress_AllIsWalked) {
  make_tree();
  scan();
  make_file("a/b/c/f", 100);
  mark("a/b/c/f");
  ASSERT_FALSE(scan_killed_after(3));
  database->handle().exec("UPDATE settings SET value = x'07' WHERE key = 'unfinished'");
  EXPECT_TRUE(scan().record.walked_everything);
  expect_exact();
  FeedRange range;
  range.since = 1;
  EXPECT_FALSE(read_changes(*database, range, [](const FeedEntry&) { return true; }).value())
      << "consumers start over: what that scan did is not known";
}

// Its times and its signature would be those that an audit finds.
TEST_F(CommittedWalkTest, DirectoryThatTheAuditFound_IsNotTakenAsWhole) {
  options.audit_period = std::chrono::hours(1);
  for (const char* path : {"d/a/f", "d/c/f", "k/f"}) make_file(path);
  scan();
  make_file("d/new/f", 1000);  // without a mark
  make_file("d/a/f", 20);
  clock.advance(std::chrono::hours(2));
  ASSERT_TRUE(stop_at("d/new"));
  forget_input();
  scan();
  EXPECT_FALSE(has_resumed);
  expect_exact();
}

// Its times say that it was not changed since before the last scan.
TEST_F(CommittedWalkTest, DirectoryOfALateMark_IsNotTakenAsWhole) {
  reader.changes_times = true;
  for (const bool is_resumed : {false, true}) {
    clear_drive();
    for (const char* path : {"top/d/a/x/f", "top/d/c/f", "k/f"}) make_file(path);
    scan_everything();
    make_file("top/d/new/f", 1000);
    clock.advance(std::chrono::hours(2));
    scan();
    mark("top/d/new/f", MarkKind::file);
    ASSERT_TRUE(stop_at("top/d/new"));
    if (!is_resumed) forget_input();
    if (is_resumed) {
      ASSERT_TRUE(stop_at("top/d"));
    }
    EXPECT_EQ(scan().record.errors, 0U);
    EXPECT_EQ(has_resumed, is_resumed);
    expect_exact();
  }
}

TEST_F(CommittedWalkTest, StoppedAgainBeforeItsPlace_TheScanLosesNothing) {
  for (int top = 0; top < 8; ++top) {
    for (const char* below : {"a", "b"}) make_file("data/" + std::to_string(top) + "/" + below + "/f");
  }
  ASSERT_TRUE(stop_at("data/6/a"));
  for (const char* path : {"data/6", "data", ""}) ASSERT_TRUE(stop_at(path));
  scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_EQ(reader.read_paths, (std::multiset<std::string>{"", "data", "data/6", "data/6/a", "data/6/b",
                                                           "data/7", "data/7/a", "data/7/b"}));
  expect_exact();
}

TEST_F(CommittedWalkTest, FileFeedHalfOn_IsOffToReaders) {
  make_tree();
  options.file_feed = false;
  scan();
  options.file_feed = true;
  ASSERT_TRUE(stop_at("g"));
  EXPECT_FALSE(keeps_files(*database).value());
  scan();
  EXPECT_TRUE(keeps_files(*database).value());
}

TEST_F(CommittedWalkTest, RolledBackDrive_ItsWalkIsResumed) {
  make_tree();
  scan_with_stamp();
  lose_stamp();
  ASSERT_TRUE(stop_at("g/h"));
  scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_FALSE(was_read("a"));
  EXPECT_TRUE(was_read("k"));
}

TEST_F(CommittedWalkTest, DriveRolledBackBeforeResume_AllIsWalked) {
  make_tree();
  scan_with_stamp();
  for (const char* path : {"a", "g/h"}) mark(path);
  ASSERT_TRUE(stop_at("g/h"));
  lose_stamp();
  make_file("a/f", 500);  // which was walked, and is not marked again
  scan();
  EXPECT_TRUE(has_resumed);
  expect_exact();
}

// No directory with links is read any more: those that were read count in the end.
TEST_F(CommittedWalkTest, LinksOfAFirstScan_CountOnceAfterAStop) {
  make_tree();
  for (const char* path : {"of-the-root", "a/one", "a/b/two", "g/three"})
    std::filesystem::create_hard_link(on_drive("a/f"), on_drive(path));
  ASSERT_TRUE(stop_at("k"));
  make_file("a/f", 500);  // the root is read again before anything else
  for (const char* path : {"of-the-root", "a/f", "a/b/two", "g/three"}) mark(path, MarkKind::file);
  scan_counting_reads();
  EXPECT_TRUE(has_resumed);
  EXPECT_FALSE(was_read("a/b"));
  scan();
  expect_exact();
  make_file("a/b/f", 5);
  mark("a/b");
  scan();
  expect_exact();
}

class CommittedWalkOfTwoDrivesTest : public CommittedWalkTest {
 protected:
  CommittedWalkOfTwoDrivesTest() : CommittedWalkTest({"one", "two"}) {}
};

// What another scan committed is not that of the first attempt.
TEST_F(CommittedWalkOfTwoDrivesTest, DriveReplacedAfterAnUnfinishedScan_TheOtherIsWalkedWhole) {
  for (const char* path : {"a/f", "b/f", "c/f"}) write_file(on_drive(path, 1), 10);
  write_file(on_drive("z/f", 0), 10);
  scan();
  for (const char* path : {"a", "b", "c"}) mark(path);
  ASSERT_TRUE(stop_at("c"));
  write_file(on_drive("a/unmarked", 1), 1000);
  options.full = true;
  reader.before_read = [&](std::string_view path) {
    if (path == "z") std::filesystem::rename(drive(0), temp / "away");
  };
  const ScanReport report = scan();
  EXPECT_FALSE(has_resumed);
  EXPECT_EQ(report.failed_drives.size(), 1U);
  EXPECT_EQ(usage("a")->total.bytes, 1010U);
}

}  // namespace
}  // namespace spoor::scanner
