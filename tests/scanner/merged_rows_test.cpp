// The rows that small scans put apart: who reads them, and how they come to those of all directories.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "scanner/errors.h"
#include "tests/scanner/failing_disk.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class MergedRowsTest : public ScannedNode {
 protected:
  MergedRowsTest() {
    merges = false;
    for (int number = 0; number < 40; ++number) make_file(path(number) + "/file");
    scan();
  }

  static std::string path(int number) {
    return "top" + std::to_string(number % 4) + "/" + std::to_string(number);
  }

  void change(int number, std::size_t bytes) {
    make_file(path(number) + "/file", bytes);
    mark(path(number) + "/file");
  }

  std::int64_t apart() const { return database->handle().number("SELECT count(*) FROM newer"); }
};

TEST_F(MergedRowsTest, FirstScan_PutsNoneApart) { EXPECT_EQ(apart(), 0); }

TEST_F(MergedRowsTest, ChangedRows_AreApartUntilTheyAreMany) {
  change(7, 100);
  scan();
  EXPECT_EQ(apart(), 3) << "the directory and those above it";
  expect_exact();
  change(7, 200);
  change(8, 200);
  scan();
  EXPECT_EQ(apart(), 5);
  expect_exact();
  EXPECT_TRUE(database->merge_rows());
  EXPECT_EQ(apart(), 5) << "few rows wait for others";
  EXPECT_TRUE(database->merge_rows(9)) << "8 were put";
  EXPECT_EQ(apart(), 5);
  EXPECT_TRUE(database->merge_rows(8));
  EXPECT_EQ(apart(), 0);
  expect_exact();
  EXPECT_TRUE(database->merge_rows(1)) << "none are left";
  change(9, 300);
  scan();
  expect_exact();
}

TEST_F(MergedRowsTest, NewDirectories_AreInPlace) {
  make_file("top1/new/below/file");
  mark("top1/new", tracker::MarkKind::tree);
  scan();
  EXPECT_EQ(apart(), 2) << "those above it";
  expect_exact();
}

TEST_F(MergedRowsTest, DirectoryThatIsGone_LeavesNoRowApart) {
  change(7, 100);
  scan();
  remove("top3");
  mark("top3", tracker::MarkKind::tree);
  scan();
  EXPECT_EQ(apart(), 1) << "the root";
  expect_exact();
}

TEST_F(MergedRowsTest, FullScan_MergesAll) {
  change(7, 100);
  scan();
  change(7, 200);
  scan_everything();
  EXPECT_EQ(apart(), 0);
  expect_exact();
}

TEST_F(MergedRowsTest, KillAtAnyWriteOfAMerge_LosesNothing) {
  for (int number = 0; number < 40; number += 3) change(number, 100);
  scan();
  ASSERT_GT(apart(), 0);
  database->empty_log();
  database.reset();
  const auto merge = [this] {
    auto opened = UsageDatabase::open(file());
    return opened && opened->merge_rows(1);
  };
  bool merged = false;
  const int killed = kill_at_each_write(file(), merge, [&](bool /*was_killed*/) {
    reopen_database();
    expect_exact();
    merged = apart() == 0;
    database.reset();
  });
  EXPECT_GT(killed, 5);
  EXPECT_TRUE(merged);
}

TEST_F(MergedRowsTest, FullDiskAtAnyWriteOfAMerge_LosesNothing) {
  for (int number = 0; number < 40; number += 3) change(number, 100);
  scan();
  database.reset();
  int failures = 0;
  for (int at = 1;; ++at) {
    ASSERT_LT(at, 1000);
    {
      const FailingDisk disk(FailingDisk::Fate::full, at);
      auto opened = UsageDatabase::open(file());
      const auto merged = opened ? opened->merge_rows(1) : opened.error();
      if (!FailingDisk::has_failed()) break;
      if (!merged) {
        EXPECT_EQ(merged.error().code, Errc::database_failed) << merged.error().message;
        ++failures;
      }
    }
    ASSERT_FALSE(std::filesystem::exists(temp / "scan.db.damaged")) << at;
    reopen_database();
    expect_exact();
    database.reset();
  }
  EXPECT_GT(failures, 1);
  reopen_database();
  expect_exact();
  EXPECT_EQ(apart(), 0);
}

}  // namespace
}  // namespace spoor::scanner
