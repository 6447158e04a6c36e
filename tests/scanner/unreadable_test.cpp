// What can't be read is left for next time, and nothing of what was marked below it is lost: the
// cursors have moved on by then, so the scan itself has to remember.

#include <gtest/gtest.h>

#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class UnreadableTest : public ScannedNode {
 protected:
  // a/b is unreadable in the scan that should have read it.
  void scan_with_fault(int number = EACCES, const std::string& path = "a/b") {
    reader.open_errors[path] = number;
    const ScanReport report = scan();
    EXPECT_EQ(report.record.errors, 1U);
    ASSERT_EQ(report.errors.size(), 1U);
    EXPECT_EQ(report.errors[0].path, on_drive(path).native());
    EXPECT_TRUE(report.left_something());
    reader.repair();
  }
};

TEST_F(UnreadableTest, UnreadableDirectory_KeepsOldTotals) {
  make_file("a/b/c/1");
  make_file("a/b/2");
  make_file("a/d/1");
  scan();
  make_file("a/b/c/3");
  make_file("a/d/2");
  mark("a/b/c");
  mark("a/d");
  scan_with_fault();
  EXPECT_EQ(files("a/b"), 2U);
  EXPECT_EQ(files("a/b/c"), 1U);
  EXPECT_EQ(files("a/d"), 2U) << "its neighbours are read all the same";
  EXPECT_EQ(files(""), 4U);
  EXPECT_FALSE(is_complete("a/b"));
}

TEST_F(UnreadableTest, ReadableAgain_IsReadWithoutAMark) {
  make_file("a/b/1");
  scan();
  make_file("a/b/2");
  mark("a/b");
  scan_with_fault();
  scan_counting_reads();
  EXPECT_TRUE(was_read("a/b"));
  EXPECT_TRUE(is_complete("a/b"));
  expect_exact();
  scan_counting_reads();
  EXPECT_TRUE(reader.read_paths.empty()) << "once is enough";
}

// Which of its descendants were dirty was said by marks that are used up.
TEST_F(UnreadableTest, ReadableAgain_AllBelowIsRead) {
  make_file("a/b/c/d/1");
  make_file("a/b/e/1");
  scan();
  make_file("a/b/c/d/2");
  mark("a/b/c/d");
  for (int round = 0; round < 3; ++round) scan_with_fault(EIO);
  scan_counting_reads();
  EXPECT_TRUE(was_read("a/b/c/d"));
  expect_exact();
}

TEST_F(UnreadableTest, SubdirectoryFailsLater_OnlyItStaysPending) {
  make_file("a/b/c/d/1");
  make_file("a/b/e/1");
  scan();
  make_file("a/b/c/d/2");
  mark("a/b/c/d");
  scan_with_fault(EIO, "a/b");
  scan_with_fault(EIO, "a/b/c");
  EXPECT_TRUE(is_complete("a/b/e"));
  EXPECT_FALSE(is_complete("a/b"));
  scan_counting_reads();
  EXPECT_FALSE(was_read("a/b/e")) << "that was paid the last time";
  EXPECT_TRUE(was_read("a/b/c/d"));
  expect_exact();
}

TEST_F(UnreadableTest, PathToPendingDirectory_IsReadThroughCleanOnes) {
  make_file("x/y/z/a/b/c/1");
  make_file("x/other/1");
  scan();
  make_file("x/y/z/a/b/c/2");
  mark("x/y/z/a/b/c");
  scan_with_fault(EIO, "x/y/z/a/b");
  mark("elsewhere");
  scan_counting_reads();
  EXPECT_FALSE(was_read("x/other"));
  expect_exact();
}

TEST_F(UnreadableTest, NewUnreadableDirectory_CountsAsEmpty) {
  make_file("a/1");
  for (const std::string path : {"a/b", "a/n"}) {  // in the first scan, and in a later one
    make_file(path + "/c/1");
    mark(path + "/c");
    scan_with_fault(EACCES, path);
    EXPECT_EQ(files(path), 0U);
    EXPECT_EQ(scan().record.figures.dirs_new, 2U);
    expect_exact();
  }
}

TEST_F(UnreadableTest, UnreadableReplacement_KeepsNothingOfTheOldDirectory) {
  make_file("a/b/c/1");
  make_file("a/n/c/1");
  make_file("a/n/c/2");
  scan();
  remove("a/b");
  rename("a/n", "a/b");
  mark("a/b");
  mark("a/n");
  scan_with_fault();
  EXPECT_EQ(files("a/b"), 0U);
  scan();
  expect_exact();
}

TEST_F(UnreadableTest, DeletedWhileUnread_IsRemoved) {
  make_file("a/b/c/1");
  scan();
  mark("a/b");
  scan_with_fault();
  remove("a/b");
  mark("a/b");
  EXPECT_EQ(scan().record.figures.dirs_deleted, 2U);
  expect_exact();
  EXPECT_TRUE(is_complete(""));
}

TEST_F(UnreadableTest, UnreadableCleanDirectory_IsNotAnError) {
  make_file("a/b/1");
  make_file("a/c/1");
  scan();
  reader.open_errors["a/b"] = EACCES;
  mark("a/c");
  EXPECT_EQ(scan().record.errors, 0U);
  expect_exact();
}

TEST_F(UnreadableTest, UnreadableInFullScan_AllBelowIsReadLater) {
  make_file("a/b/c/1");
  scan();
  make_file("a/b/c/2");  // and nobody marks it
  options.full = true;
  scan_with_fault();
  options.full = false;
  scan();
  expect_exact();
}

TEST_F(UnreadableTest, FileStatFails_SubdirectoriesAreStillRead) {
  make_file("a/b/1");
  make_file("a/c/1");
  make_file("a/own");
  scan();
  make_file("a/own2");
  make_file("a/b/2");
  make_file("a/c/2");
  mark("a/b");
  mark("a/own2");
  reader.file_errors["a"] = EIO;
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 1U);
  EXPECT_EQ(files("a/b"), 2U) << "marked, and read";
  EXPECT_EQ(files("a"), 1U + 2U + 1U) << "its own files as before";
  EXPECT_FALSE(is_complete("a"));
  EXPECT_TRUE(is_complete("a/b"));
  reader.repair();
  scan_counting_reads();
  EXPECT_TRUE(was_read("a"));
  EXPECT_FALSE(was_read("a/b"));
  EXPECT_EQ(files("a"), 2U + 2U + 1U) << "a/c was never marked";
  EXPECT_TRUE(is_complete("a"));
}

TEST_F(UnreadableTest, FileStatFailsInNewDirectory_SubdirectoriesAreCounted) {
  make_file("a/b/1");
  reader.file_errors["a"] = EIO;
  scan();
  EXPECT_EQ(files("a"), 1U);
  reader.repair();
  scan();
  expect_exact();
}

TEST_F(UnreadableTest, ErrorsKeptMaxExceeded_AllErrorsAreCounted) {
  options.errors_kept_max = 3;
  for (int number = 0; number < 10; ++number) {
    const std::string path = "a/" + std::to_string(number);
    make_directory(path);
    reader.open_errors[path] = EACCES;
  }
  const ScanReport report = scan();
  EXPECT_EQ(report.record.errors, 10U);
  EXPECT_EQ(report.errors.size(), 3U);
}

}  // namespace
}  // namespace spoor::scanner
