#include "scanner/walk/scan_plan.h"

#include <gtest/gtest.h>

#include <string>

#include "tracker/filter/hash.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

using tracker::BloomShape;

class ScanPlanTest : public ::testing::Test {
 protected:
  void mark(std::string_view path) {
    const tracker::PrefixHashes hashes(path);
    for (const tracker::PathHash& hash : hashes.all()) marks_.add(hash, shape_);
  }

  // Of a directory whose stored inode is 7.
  Reason reason(std::string_view path, std::uint64_t inode = 7, Reason above = Reason::marked,
                std::string_view drive = "one", const ResumePoint& resumed = {}) const {
    const ScanPlan plan(marks_, full_);
    PlanCursor cursor = plan.root(drive, resumed);
    for (tracker::ComponentCursor at(path); at.next();) cursor.descend(at.component());
    std::optional<Reason> parent = above;
    if (path.empty()) parent.reset();
    return plan.reason(cursor, inode, known_, parent);
  }

  const BloomShape shape_ = BloomShape::for_items(1000, 1e-9);
  tracker::MarkSet marks_;
  bool full_ = false;
  std::optional<ScanPlan::Known> known_ = ScanPlan::Known{7, false, false};
};

TEST_F(ScanPlanTest, MarkThatNamesADrive_IsForThatDriveAlone) {
  mark(tracker::drive_mark_path("one", "a/b"));
  marks_.add_tree(tracker::drive_mark_path("two", "t"));
  mark("all/d");
  const auto reason_on = [&](std::string_view drive, std::string_view path) {
    return reason(path, 7, Reason::marked, drive);
  };
  for (const char* path : {"a", "a/b"}) EXPECT_EQ(reason_on("one", path), Reason::marked) << path;
  for (const char* path : {"a", "a/b", "x"}) EXPECT_EQ(reason_on("two", path), Reason::clean) << path;
  EXPECT_EQ(reason_on("one", "t"), Reason::clean);
  EXPECT_EQ(reason_on("two", "t"), Reason::tree_mark);
  EXPECT_EQ(reason_on("two", "t/below"), Reason::tree_mark);
  for (const char* drive : {"one", "two", "three"}) EXPECT_EQ(reason_on(drive, "all/d"), Reason::marked);
  // The root, and a drive whose identity is not known, are read for any of them.
  EXPECT_EQ(reason_on("three", ""), Reason::marked);
  EXPECT_EQ(reason_on("", "x"), Reason::tree_mark);
}

TEST_F(ScanPlanTest, NoMarkThatNamesADrive_UnknownIdentityCostsNothing) {
  mark("a/b");
  EXPECT_EQ(reason("x", 7, Reason::marked, ""), Reason::clean);
  EXPECT_EQ(reason("a", 7, Reason::marked, ""), Reason::marked);
}

// Joined to an ancestor, as too many are.
TEST_F(ScanPlanTest, TreeMarksOfDrivesJoined_CoverThem) {
  marks_.add_tree(tracker::drive_marks_top);
  for (const char* drive : {"one", "two"})
    EXPECT_EQ(reason("x/y", 7, Reason::marked, drive), Reason::tree_mark);
}

TEST_F(ScanPlanTest, KnownUnmarkedDirectory_IsClean) {
  mark("a/b");
  EXPECT_EQ(reason("x"), Reason::clean);
  EXPECT_EQ(reason("a/x"), Reason::clean);
  EXPECT_EQ(reason("a/b/x"), Reason::clean);
}

TEST_F(ScanPlanTest, MarkedPath_IsReadWithItsPrefixes) {
  mark("a/b");
  EXPECT_EQ(reason("a"), Reason::marked);
  EXPECT_EQ(reason("a/b"), Reason::marked);
}

TEST_F(ScanPlanTest, SeveralFilters_AllAreChecked) {
  mark("a/b");
  marks_.add(tracker::hash_path("z"), BloomShape::for_items(50, 0.01));
  EXPECT_EQ(reason("z"), Reason::marked);
  EXPECT_EQ(reason("a/b"), Reason::marked);
}

TEST_F(ScanPlanTest, AnyMark_ReadsTheRoot) {
  EXPECT_EQ(reason(""), Reason::clean);
  marks_.add_filter(tracker::BloomFilter(shape_));
  EXPECT_EQ(reason(""), Reason::clean) << "a filter without a bit marks nothing";
  mark("a/b");
  EXPECT_EQ(reason(""), Reason::marked);
}

TEST_F(ScanPlanTest, EmptyPathHash_ReadsOnlyTheRoot) {
  marks_.add(tracker::hash_path(""), shape_);
  EXPECT_EQ(reason(""), Reason::marked);
  EXPECT_EQ(reason("a"), Reason::clean);
}

TEST_F(ScanPlanTest, TreeMark_ReadsPathToItAndAllBelow) {
  marks_.add_tree("a/b");
  EXPECT_EQ(reason(""), Reason::marked);
  EXPECT_EQ(reason("a"), Reason::marked);
  EXPECT_EQ(reason("a/b"), Reason::tree_mark);
  EXPECT_EQ(reason("a/b/c"), Reason::tree_mark);
  EXPECT_EQ(reason("a/c"), Reason::clean);
  EXPECT_EQ(reason("a/bc"), Reason::clean);
  EXPECT_FALSE(reads_all_below(reason("a")));
  EXPECT_TRUE(reads_all_below(reason("a/b")));
}

TEST_F(ScanPlanTest, TreeMarkOnRoot_ReadsEverything) {
  marks_.add_tree("");
  EXPECT_EQ(reason(""), Reason::tree_mark);
  EXPECT_EQ(reason("x/y"), Reason::tree_mark);
}

TEST_F(ScanPlanTest, FullScan_ReadsEverything) {
  full_ = true;
  EXPECT_EQ(reason(""), Reason::full);
  EXPECT_EQ(reason("x"), Reason::full);
}

TEST_F(ScanPlanTest, UnknownDirectory_IsReadWithAllBelow) {
  known_.reset();
  EXPECT_EQ(reason("x"), Reason::unknown);
  EXPECT_TRUE(reads_all_below(Reason::unknown));
}

TEST_F(ScanPlanTest, InodeChanged_IsOtherDirectoryInEveryScan) {
  EXPECT_EQ(reason("x", 8), Reason::other_directory);
  EXPECT_TRUE(reads_all_below(Reason::other_directory));
  full_ = true;
  EXPECT_EQ(reason("x", 8), Reason::other_directory);
  mark("x");
  EXPECT_EQ(reason("x", 8), Reason::other_directory);
}

TEST_F(ScanPlanTest, ReasonForAllBelow_IsInherited) {
  for (const Reason above : {Reason::full, Reason::tree_mark, Reason::unknown, Reason::other_directory,
                             Reason::not_known_below, Reason::below_a_reason}) {
    EXPECT_EQ(reason("x", 7, above), Reason::below_a_reason);
  }
  EXPECT_EQ(reason("x", 7, Reason::marked), Reason::clean);
  EXPECT_EQ(reason("x", 7, Reason::left_below), Reason::clean);
}

TEST_F(ScanPlanTest, PendingDirectoryBelow_IsReadAgain) {
  known_ = ScanPlan::Known{7, false, true};
  EXPECT_EQ(reason("x"), Reason::left_below);
  EXPECT_FALSE(reads_all_below(Reason::left_below));
}

TEST_F(ScanPlanTest, UnreadDirectory_IsReadWithAllBelow) {
  known_ = ScanPlan::Known{7, true, true};
  EXPECT_EQ(reason("x"), Reason::not_known_below);
  EXPECT_TRUE(reads_all_below(Reason::not_known_below));
  mark("x");
  EXPECT_TRUE(reads_all_below(reason("x"))) << "a mark is no reason to read less";
}

TEST_F(ScanPlanTest, ResumedScan_WhatIsBeforeItsPlaceIsDone) {
  for (const char* path : {"a/b", "a/c/d", "b", "c"}) mark(path);
  const auto resumed_at = [&](const std::string& place, std::string_view path) {
    return reason(path, 7, Reason::marked, "one", ResumePoint::at(place));
  };
  for (const char* path : {"a/b", "a/c", "a/c/d", "a/a"}) EXPECT_EQ(resumed_at("a/c", path), Reason::clean);
  for (const char* path : {"", "a"}) EXPECT_EQ(resumed_at("a/c", path), Reason::marked) << path;
  for (const char* path : {"b", "c"}) EXPECT_EQ(resumed_at("a/c", path), Reason::marked) << path;
  EXPECT_EQ(resumed_at("a/c", "a/d"), Reason::clean) << "it is not marked";
  EXPECT_EQ(resumed_at("a/", "a/b"), Reason::marked) << "a was open, and nothing in it was done";
  EXPECT_EQ(resumed_at("a-b/", "a"), Reason::clean) << "a, and then a-b, in the order of names";
  EXPECT_EQ(resumed_at("", "a"), Reason::marked);
  EXPECT_EQ(reason("c", 7, Reason::marked, "one", ResumePoint::done()), Reason::clean);
}

TEST_F(ScanPlanTest, ResumedScan_WhatWasOpenIsReadAgain) {
  EXPECT_EQ(reason("a", 7, Reason::left_below, "one", ResumePoint::at("a/c")), Reason::left_below);
  EXPECT_EQ(reason("", 7, Reason::left_below, "one", ResumePoint::at("")), Reason::left_below);
}

TEST_F(ScanPlanTest, ResumedScan_WhatIsDoneButLeftOrAnotherIsRead) {
  full_ = true;
  const auto done = [&](std::uint64_t inode = 7) {
    return reason("a", inode, Reason::marked, "one", ResumePoint::done());
  };
  EXPECT_EQ(done(), Reason::clean);
  EXPECT_EQ(done(8), Reason::other_directory);
  known_->left_below = true;
  EXPECT_EQ(done(), Reason::left_below);
  known_->all_below_dirty = true;
  EXPECT_EQ(done(), Reason::not_known_below);
  known_.reset();
  EXPECT_EQ(done(), Reason::unknown);
}

}  // namespace
}  // namespace spoor::scanner
