#include "scanner/usage/usage_query.h"

#include <gtest/gtest.h>

#include "scanner/errors.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

class UsageQueryTest : public ScannedNode {
 protected:
  UsageQueryTest() : ScannedNode({"one", "two"}) {}

  // Of all below, each behind its parent.
  static std::vector<std::string> paths(const Usage& usage) {
    std::vector<std::string> found;
    for_each_entry(usage.total, [&](const UsageEntry& entry) {
      if (entry.depth > 0) found.push_back(entry.path);
    });
    return found;
  }

  Usage ask(const UsageOptions& asked) {
    auto found = query_usage(*database, "", asked);
    EXPECT_TRUE(found) << found.error().message;
    return found.value().value();
  }

  // Directories of so many files of one byte, on alternating drives.
  void make(const std::map<std::string, int>& files) {
    std::size_t number = 0;
    for (const auto& [path, count] : files) {
      for (int i = 0; i < count; ++i) write_file(on_drive(path + "/" + std::to_string(i), number++ % 2), 1);
    }
    scan();
  }
};

using Paths = std::vector<std::string>;

TEST_F(UsageQueryTest, BeforeFirstScan_NothingIsFound) {
  EXPECT_FALSE(usage(""));
  EXPECT_FALSE(usage("a"));
}

TEST_F(UsageQueryTest, Children_AreMergedOverDrivesByName) {
  for (const char* path : {"b/1", "a/1", "c/d/e/1"}) write_file(on_drive(path, 0), 1);
  for (const char* path : {"b/2", "z/2"}) write_file(on_drive(path, 1), 1);
  scan();
  const auto found = usage("");
  EXPECT_EQ(paths(*found), (Paths{"a", "b", "c", "z"}));
  EXPECT_EQ(found->total.children[1].files, 2U);
  EXPECT_EQ(found->total.dirs, 7U) << "a directory on two drives is two directories";
  EXPECT_EQ(found->total.children[1].depth, 1U);
}

TEST_F(UsageQueryTest, Depth_LimitsTheLevels) {
  write_file(on_drive("a/b/c/1", 0), 1);
  write_file(on_drive("a/z/1", 0), 1);
  scan();
  EXPECT_TRUE(usage("", 0)->total.children.empty());
  EXPECT_EQ(paths(*usage("", 2)), (Paths{"a", "a/b", "a/z"}));
  EXPECT_EQ(paths(*usage("a", 9)), (Paths{"a/b", "a/b/c", "a/z"}));
}

TEST_F(UsageQueryTest, UnknownPath_ReturnsNothing) {
  write_file(on_drive("a/file", 0), 1);
  scan();
  EXPECT_FALSE(usage("b"));
  EXPECT_FALSE(usage("a/file")) << "a file is no directory";
  EXPECT_TRUE(usage("a"));
}

TEST_F(UsageQueryTest, AsOf_IsStartOfLastNonPartialScan) {
  scan();
  const auto first = usage("")->as_of;
  ASSERT_TRUE(first);
  EXPECT_TRUE(is_complete(""));
  partial = true;
  scan();
  EXPECT_EQ(usage("")->as_of, first);
  EXPECT_FALSE(is_complete("")) << "some peer's marks are still to be walked";
  partial = false;
  scan();
  EXPECT_GT(usage("")->as_of, first);
  EXPECT_TRUE(is_complete(""));
}

TEST_F(UsageQueryTest, FullWalkWithMissingPeer_IsComplete) {
  scan();
  partial = true;
  scan_everything();
  EXPECT_TRUE(is_complete(""));
}

TEST_F(UsageQueryTest, UnreadDirectory_MakesItsParentsIncomplete) {
  write_file(on_drive("a/b/c/1", 0), 1);
  write_file(on_drive("a/z/1", 0), 1);
  scan();
  mark("a/b");
  reader.open_errors["a/b"] = EACCES;
  scan();
  EXPECT_FALSE(is_complete(""));
  EXPECT_FALSE(is_complete("a"));
  EXPECT_FALSE(is_complete("a/b"));
  EXPECT_FALSE(is_complete("a/b/c")) << "what is stored below an unread directory is not certain";
  EXPECT_TRUE(is_complete("a/z"));
  const auto found = usage("a", 2);
  ASSERT_EQ(paths(*found), (Paths{"a/b", "a/b/c", "a/z"}));
  EXPECT_FALSE(found->total.children[0].complete);
  EXPECT_FALSE(found->total.children[0].children[0].complete);
  EXPECT_TRUE(found->total.children[1].complete);
}

TEST_F(UsageQueryTest, FailedDrive_MakesEverythingIncomplete) {
  write_file(on_drive("a/1", 0), 1);
  scan();
  reader.drive_errors[drive(1)] = EIO;
  scan();
  EXPECT_FALSE(is_complete("a")) << "the other drive may have it too";
}

TEST_F(UsageQueryTest, DefaultOrder_IsLargestFirst) {
  write_file(on_drive("few/large", 0), 100);
  make({{"a", 3}, {"b", 2}, {"few/x", 1}});
  EXPECT_EQ(paths(ask({.depth = 2})), (Paths{"few", "few/x", "a", "b"}));
  EXPECT_EQ(paths(ask({.order = UsageOrder::files})), (Paths{"a", "b", "few"})) << "the same by name";
  EXPECT_EQ(paths(ask({.order = UsageOrder::name})), (Paths{"a", "b", "few"}));
}

TEST_F(UsageQueryTest, ChildrenBeyondChildrenMax_AreSummedInRest) {
  make({{"a", 1}, {"b", 5}, {"c", 2}, {"d", 3}, {"d/x", 1}});
  const Usage found = ask({.depth = 2, .children_max = 2});
  EXPECT_EQ(paths(found), (Paths{"b", "d", "d/x"}));
  EXPECT_EQ(found.total.rest.count, 2U);
  EXPECT_EQ(found.total.rest.files, 3U);
  EXPECT_EQ(found.total.rest.bytes, 3U);
  EXPECT_EQ(found.total.children[1].rest.count, 0U);
  EXPECT_FALSE(found.truncated) << "it is what was asked for";
  EXPECT_EQ(paths(ask({.order = UsageOrder::name, .children_max = 2})), (Paths{"a", "b"}));
  EXPECT_EQ(ask({.children_max = 0}).total.rest.count, 4U);
}

TEST_F(UsageQueryTest, RestWithPendingDirectory_IsIncomplete) {
  make({{"a", 3}, {"b", 2}, {"c", 1}});
  EXPECT_TRUE(ask({.children_max = 1}).total.rest.complete);
  mark("c");
  reader.open_errors["c"] = EACCES;
  scan();
  EXPECT_FALSE(ask({.children_max = 1}).total.rest.complete);
  EXPECT_TRUE(ask({.children_max = 3}).total.rest.complete) << "there is none";
}

TEST_F(UsageQueryTest, EntriesMax_FillsUpperLevelsFirst) {
  make({{"a/1", 3}, {"a/2", 1}, {"b/1", 2}, {"c", 1}});
  const Usage all = ask({.depth = 2, .entries_max = 6});
  EXPECT_EQ(paths(all), (Paths{"a", "a/1", "a/2", "b", "b/1", "c"}));
  EXPECT_FALSE(all.truncated);

  const Usage most = ask({.depth = 2, .entries_max = 4});
  EXPECT_EQ(paths(most), (Paths{"a", "a/1", "b", "c"}));
  EXPECT_TRUE(most.truncated);
  EXPECT_EQ(most.total.children[0].rest.count, 1U);
  EXPECT_FALSE(most.total.children[1].is_open) << "b has children, but they were not looked up";

  const Usage few = ask({.depth = 2, .entries_max = 2});
  EXPECT_EQ(paths(few), (Paths{"a", "b"}));
  EXPECT_EQ(few.total.rest.count, 1U);
  EXPECT_TRUE(few.truncated);
}

TEST_F(UsageQueryTest, PathBytesMax_TruncatesTheAnswer) {
  make({{"aaaaaaaaaa", 3}, {"bbbbb", 2}, {"c", 1}});
  const Usage found = ask({.path_bytes_max = 14});
  EXPECT_EQ(paths(found), (Paths{"aaaaaaaaaa"})) << "in order: none is passed over for a shorter one";
  EXPECT_EQ(found.total.rest.count, 2U);
  EXPECT_TRUE(found.truncated);
  EXPECT_FALSE(ask({.path_bytes_max = 16}).truncated);
}

TEST_F(UsageQueryTest, ShouldStop_QueryIsInterrupted) {
  make({{"a", 1}, {"b", 1}, {"c", 1}});
  int asked = 0;
  const auto stopped = query_usage(*database, "", {.should_stop = [&] { return ++asked == 2; }});
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_EQ(asked, 2);
}

TEST(UsagePathTest, ParseUsagePath_NormalizesSlashesAndRefusesInvalid) {
  for (const char* raw : {"", "/", ".", "./", "//./"}) EXPECT_EQ(parse_usage_path(raw).value(), "") << raw;
  EXPECT_EQ(parse_usage_path("/a//b/").value(), "a/b");
  EXPECT_FALSE(parse_usage_path(".."));
  EXPECT_FALSE(parse_usage_path(std::string_view("\0", 1)));
}

TEST_F(UsageQueryTest, CopyRules_CountEachCopyOnce) {
  write_file(on_drive("b1/f", 0), 30);
  write_file(on_drive("b1/f", 1), 30);
  write_file(on_drive("b1/tmp/f", 1), 5);
  write_file(on_drive("ec/x/f", 0), 15);
  write_file(on_drive("plain/f", 0), 7);
  scan();
  UsageOptions asked;
  asked.copies = tracker::CopyRules({{"b*", 3}, {"ec", 1.5}, {"b1/tmp", 1}});
  const auto found = ask(asked);
  EXPECT_TRUE(found.has_copy_rules);
  EXPECT_EQ(found.total.bytes, 87U);
  EXPECT_EQ(found.total.logical_bytes(), 20U + 5 + 10 + 7);
  std::map<std::string, std::uint64_t> logical;
  for (const UsageEntry& child : found.total.children) logical[child.path] = child.logical_bytes();
  EXPECT_EQ(logical, (std::map<std::string, std::uint64_t>{{"b1", 25}, {"ec", 10}, {"plain", 7}}));
  asked.depth = 0;
  EXPECT_EQ(ask(asked).total.logical_bytes(), 42U) << "also if no child is listed";
  EXPECT_EQ(query_usage(*database, "ec/x", asked).value()->total.logical_bytes(), 10U) << "inherited";
  EXPECT_EQ(query_usage(*database, "b1/tmp", asked).value()->total.logical_bytes(), 5U);
  asked.depth = 1;
  asked.children_max = 1;
  const auto cut = ask(asked);
  EXPECT_EQ(cut.total.children.at(0).path, "b1");
  EXPECT_EQ(cut.total.rest.logical_bytes(), 17U);
}

TEST_F(UsageQueryTest, AbsentIsEmpty_ReturnsZerosForADirectoryThatNoDriveHas) {
  write_file(on_drive("a/f", 0), 1);
  scan();
  UsageOptions asked;
  asked.absent_is_empty = true;
  const auto absent = query_usage(*database, "a/b", asked).value();
  ASSERT_TRUE(absent);
  EXPECT_TRUE(absent->is_absent);
  EXPECT_EQ(absent->total.path, "a/b");
  EXPECT_EQ(absent->total.files, 0U);
  EXPECT_TRUE(absent->is_complete(absent->total));
  EXPECT_FALSE(query_usage(*database, "a", asked).value()->is_absent);
}

}  // namespace
}  // namespace spoor::scanner
