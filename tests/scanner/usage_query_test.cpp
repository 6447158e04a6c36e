#include "scanner/usage_query.h"

#include <gtest/gtest.h>

#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class UsageQueryTest : public ScannedNode {
 protected:
  UsageQueryTest() : ScannedNode({"one", "two"}) {}

  static std::vector<std::string> paths(const Usage& usage) {
    std::vector<std::string> found;
    for (const UsageEntry& entry : usage.below) found.push_back(entry.path);
    return found;
  }
};

TEST_F(UsageQueryTest, NothingIsKnownBeforeTheFirstScan) {
  EXPECT_FALSE(usage(""));
  EXPECT_FALSE(usage("a"));
}

TEST_F(UsageQueryTest, DrivesAreSummedUp) {
  write_file(on_drive("a/x", 0), 10);
  write_file(on_drive("a/y", 1), 20);
  write_file(on_drive("a/b/z", 1), 30);
  scan();
  const auto found = usage("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->total.path, "a");
  EXPECT_EQ(found->total.files, 3U);
  EXPECT_EQ(found->total.bytes, 60U);
  EXPECT_EQ(found->total.dirs, 1U);
  EXPECT_EQ(usage("")->total.dirs, 3U) << "a directory on two drives is two directories";
}

TEST_F(UsageQueryTest, ChildrenComeByNameMergedOverTheDrives) {
  for (const char* path : {"b/1", "a/1", "c/d/e/1"}) write_file(on_drive(path, 0), 1);
  for (const char* path : {"b/2", "z/2"}) write_file(on_drive(path, 1), 1);
  scan();
  const auto found = usage("");
  EXPECT_EQ(paths(*found), (std::vector<std::string>{"a", "b", "c", "z"}));
  EXPECT_EQ(found->below[1].files, 2U);
  EXPECT_EQ(found->below[1].depth, 1U);
}

TEST_F(UsageQueryTest, DepthSaysHowFarDown) {
  write_file(on_drive("a/b/c/1", 0), 1);
  write_file(on_drive("a/z/1", 0), 1);
  scan();
  EXPECT_TRUE(usage("", 0)->below.empty());
  EXPECT_EQ(paths(*usage("", 2)), (std::vector<std::string>{"a", "a/b", "a/z"}));
  EXPECT_EQ(paths(*usage("a", 9)), (std::vector<std::string>{"a/b", "a/b/c", "a/z"}));
}

TEST_F(UsageQueryTest, APathNobodyHasIsNothing) {
  write_file(on_drive("a/file", 0), 1);
  scan();
  EXPECT_FALSE(usage("b"));
  EXPECT_FALSE(usage("a/file")) << "a file is no directory";
  EXPECT_TRUE(usage("a"));
}

TEST_F(UsageQueryTest, AsOfIsTheStartOfTheLastScanThatSawEverything) {
  scan();
  const auto first = usage("")->as_of;
  ASSERT_TRUE(first);
  EXPECT_TRUE(usage("")->complete);
  partial = true;
  scan();
  EXPECT_EQ(usage("")->as_of, first);
  EXPECT_FALSE(usage("")->complete) << "some peer's marks are still to be walked";
  partial = false;
  scan();
  EXPECT_GT(usage("")->as_of, first);
  EXPECT_TRUE(usage("")->complete);
}

TEST_F(UsageQueryTest, AFullWalkSeesEverythingWhateverThePeersSay) {
  scan();
  partial = true;
  options.full = true;
  scan();
  EXPECT_TRUE(usage("")->complete);
}

TEST_F(UsageQueryTest, WhatWasLeftMakesItselfAndAllAboveIncomplete) {
  write_file(on_drive("a/b/c/1", 0), 1);
  write_file(on_drive("a/z/1", 0), 1);
  scan();
  mark("a/b");
  reader.open_errors["a/b"] = EACCES;
  scan();
  EXPECT_FALSE(usage("")->complete);
  EXPECT_FALSE(usage("a")->complete);
  EXPECT_FALSE(usage("a/b")->complete);
  EXPECT_FALSE(usage("a/b/c")->complete) << "what is stored below an unread directory is not certain";
  EXPECT_TRUE(usage("a/z")->complete);
  const auto below = usage("a", 2)->below;
  ASSERT_EQ(below.size(), 3U);
  EXPECT_FALSE(below[0].complete);
  EXPECT_FALSE(below[1].complete);
  EXPECT_TRUE(below[2].complete);
}

TEST_F(UsageQueryTest, ADriveThatFailedMakesEverythingIncomplete) {
  write_file(on_drive("a/1", 0), 1);
  scan();
  reader.drive_errors[drive(1)] = EIO;
  scan();
  EXPECT_FALSE(usage("a")->complete) << "the other drive may have it too";
}

}  // namespace
}  // namespace spoor::scanner
