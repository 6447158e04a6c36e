// Totals by uid and gid. Random changes of owners are in random_scan_test.cpp.

#include <gmock/gmock.h>
#include <unistd.h>

#include "scanner/database/sqlite.h"
#include "scanner/store/owner_sums.h"
#include "scanner/usage/usage_query.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tracker::MarkKind;

TEST(OwnersTest, Encoded_AreDecodedWithTheDirectorysTotals) {
  const Totals own{.files = 3, .bytes = 30, .allocated = 300};
  const Owners one{{{7, 8}, {3, 30, 300}}};
  EXPECT_EQ(encode_owners(one).size(), 8U) << "its totals are the directory's";
  EXPECT_EQ(decode_owners(encode_owners(one), own), one);
  const Owners two{{{0, 0}, {1, 10, 200}}, {{4'294'967'294, 1}, {2, 20, 100}}};
  EXPECT_EQ(decode_owners(encode_owners(two), own), two);
  EXPECT_EQ(decode_owners("", own), Owners());
}

TEST(OwnersTest, Damaged_AreNotDecoded) {
  const std::string two = encode_owners({{{1, 1}, {1, 1, 1}}, {{2, 2}, {2, 2, 2}}});
  for (std::size_t bytes = 1; bytes < two.size(); ++bytes) {
    if (bytes == 8 || bytes == two.size() / 2) continue;  // those of one owner
    EXPECT_FALSE(decode_owners(two.substr(0, bytes), {})) << bytes;
  }
  EXPECT_FALSE(decode_owners(two.substr(0, 32) + two.substr(0, 32), {})) << "one owner twice";
}

TEST(FirstOwnersTest, AreInOrderAndTheOthersSummedUp) {
  const auto first = [](UsageOrder order, std::uint64_t count) {
    FirstOwners owners(order, count);
    owners.add({{1, 0}, {5, 10, 1}});
    owners.add({{2, 0}, {1, 30, 2}});
    owners.add({{3, 0}, {7, 20, 4}});
    return owners.take();
  };
  const auto ids = [](const UsageOwners& owners) {
    std::vector<std::uint32_t> uids;
    for (const OwnerEntry& entry : owners.list) uids.push_back(entry.owner.uid);
    return uids;
  };
  EXPECT_THAT(ids(first(UsageOrder::size, 9)), ElementsAre(2, 3, 1));
  EXPECT_THAT(ids(first(UsageOrder::growth, 9)), ElementsAre(2, 3, 1));
  EXPECT_THAT(ids(first(UsageOrder::files, 9)), ElementsAre(3, 1, 2));
  EXPECT_THAT(ids(first(UsageOrder::name, 9)), ElementsAre(1, 2, 3));
  const UsageOwners cut = first(UsageOrder::size, 1);
  EXPECT_THAT(ids(cut), ElementsAre(2));
  EXPECT_EQ(cut.rest_count, 2U);
  EXPECT_EQ(cut.rest, (OwnedTotals{12, 30, 5}));
}

TEST(OwnerSumsTest, ChangeOfAnyFigure_IsSummedUpToTheRoot) {
  SqliteDatabase database(":memory:", SQLITE_OPEN_READWRITE);
  create_owner_tables(database);
  const std::string owners = encode_owners({{{7, 8}, {1, 10, 512}}});
  const Totals before{.files = 1, .bytes = 10, .allocated = 512};
  OwnerSums sums(database, 2);
  sums.replace(1, "a/b", {"", {}}, {owners, before});
  sums.write();
  OwnedTotals expected{1, 10, 512};
  for (const OwnedTotals& change : {OwnedTotals{0, 0, 512}, {0, 5, 0}, {1, 0, 0}}) {
    Totals now{.files = expected.files, .bytes = expected.bytes, .allocated = expected.allocated};
    const Totals former = now;
    expected.add(change);
    now = {.files = expected.files, .bytes = expected.bytes, .allocated = expected.allocated};
    sums.replace(1, "a/b", {owners, former}, {owners, now});
    sums.write();
    SqliteStatement rows(database, "SELECT files, bytes, allocated FROM owner_sums");
    int count = 0;
    for (; rows.step(); ++count) {
      EXPECT_EQ((OwnedTotals{rows.number<std::uint64_t>(0), rows.number<std::uint64_t>(1),
                             rows.number<std::uint64_t>(2)}),
                expected);
    }
    EXPECT_EQ(count, 3) << "of a/b, a and the root";
  }
}

class OwnersScanTest : public ScannedNode {
 protected:
  OwnersScanTest() { options.owners_depth = 2; }

  void give(const std::string& path, uid_t uid, gid_t gid) {
    ASSERT_EQ(::lchown(on_drive(path).c_str(), uid, gid), 0) << path;
  }
  static bool is_root() { return ::geteuid() == 0; }
};

TEST_F(OwnersScanTest, NotWanted_NothingIsKeptOrShown) {
  options.owners_depth.reset();
  make_file("a/file");
  scan();
  EXPECT_EQ(owners(""), std::nullopt);
}

TEST_F(OwnersScanTest, DeeperThanWanted_AreNotShown) {
  make_file("a/b/c/file", 5);
  scan();
  EXPECT_EQ(owners("a/b")->begin()->second.bytes, 5U);
  EXPECT_EQ(owners("a/b/c"), std::nullopt);
}

TEST_F(OwnersScanTest, SwitchedOnOrDeeper_WalksEverythingOnce) {
  options.owners_depth.reset();
  make_file("a/b/file");
  scan();
  options.owners_depth = 1;
  EXPECT_THAT(scan().record.reason, HasSubstr("the owners of files"));
  EXPECT_EQ(scan().record.reason, "");
  options.owners_depth = 2;
  EXPECT_THAT(scan().record.reason, HasSubstr("the owners of files"));
  expect_exact();
}

// Its scan leaves them as they were, and changes directories.
TEST_F(OwnersScanTest, ScanOfAnOlderSpoor_TheyAreNotShownAndSummedUpAnew) {
  make_file("a/file", 5);
  scan();
  const std::string setting = "UPDATE settings SET value = '2 1' WHERE key = 'owners'";
  make_file("a/more", 7);
  mark("a/more", MarkKind::file);
  scan();
  database->handle().exec(setting);
  EXPECT_EQ(owners(""), std::nullopt);
  EXPECT_THAT(scan().record.reason, HasSubstr("the owners of files"));
  expect_exact();
}

TEST_F(OwnersScanTest, SwitchedOff_NothingIsLeft) {
  make_file("a/file");
  make_file("b/file");
  std::filesystem::create_hard_link(on_drive("a/file"), on_drive("b/link"));
  scan();
  options.owners_depth.reset();
  scan();
  EXPECT_EQ(owners(""), std::nullopt);
  auto& handle = database->handle();
  EXPECT_EQ(handle.number("SELECT count(*) FROM sqlite_master WHERE name = 'owner_sums'"), 0);
  EXPECT_EQ(handle.number("SELECT count(*) FROM directories WHERE owners <> x''"), 0);
  EXPECT_EQ(handle.number("SELECT count(owner) FROM links"), 0);
  options.owners_depth = 2;
  scan();
  expect_exact();
}

// A scan that switches them off changes rows before its walk; other threads see those of the last scan.
TEST_F(OwnersScanTest, SwitchedOffWhileADirectoryChanges_TheyAreExactWhenSwitchedOn) {
  trust_times();
  options.threads = 3;
  for (int number = 0; number < 20; ++number) {
    const std::string in = "a/" + std::to_string(number) + "/in";  // looked up by the thread that reads ahead
    make_file(in + "/file", 10);
    make_file(in + "/below/file", 10);
  }
  scan();
  options.owners_depth.reset();
  for (int number = 0; number < 20; ++number) {
    const std::string file = "a/" + std::to_string(number) + "/in/below/file";
    make_file(file, 20);
    mark(file, MarkKind::file);
  }
  scan();
  auto& handle = database->handle();
  EXPECT_EQ(handle.number("SELECT count(*) FROM directories WHERE owners <> x''"), 0);
  options.owners_depth = 2;
  scan();
  expect_exact();
}

// As a scan could leave it that wrote rows of the scan before.
TEST_F(OwnersScanTest, RowsHaveOwnersWithoutTheSetting_TheyAreSummedUpAnew) {
  make_file("a/file", 5);
  scan();
  database->handle().exec("DELETE FROM settings WHERE key = 'owners'; DROP TABLE owner_sums");
  scan();
  expect_exact();
}

// Of a file with several names, one holder can't be read when the owners are summed up for the first time.
TEST_F(OwnersScanTest, HolderOfALinkUnread_FileCountsOnceBeforeAndAfter) {
  options.owners_depth.reset();
  make_file("a/file", 1000);
  std::filesystem::create_directories(on_drive("b"));
  std::filesystem::create_hard_link(on_drive("a/file"), on_drive("b/link"));
  scan();
  options.owners_depth = 2;
  reader.open_errors["b"] = EIO;
  scan();
  EXPECT_EQ(owners("")->begin()->second.bytes, 1000U);
  reader.repair();
  scan();
  expect_exact();
  remove("b");
  mark("b");
  scan();
  expect_exact();
  EXPECT_EQ(owners("")->begin()->second.bytes, 1000U);
}

TEST_F(OwnersScanTest, DirectoryMountedOver_ItsFilesDoNotCount) {
  make_file("a/b/file", 5);
  make_file("a/c/file", 7);
  scan();
  reader.mount_points.insert("a/b");
  mark("a/b");
  scan();
  EXPECT_EQ(owners("a")->begin()->second.bytes, 7U);
  reader.repair();
  mark("a/b");
  scan();
  expect_exact();
}

// What it read says nothing of owners.
TEST_F(OwnersScanTest, SwitchedOnWhileAScanIsUnfinished_ThatIsNotResumed) {
  resumes = true;
  options.owners_depth.reset();
  for (int number = 0; number < 20; ++number) make_file("d" + std::to_string(number) + "/file");
  EXPECT_FALSE(scan_killed_after(15));
  options.owners_depth = 2;
  scan();
  expect_exact();
}

TEST_F(OwnersScanTest, SumsTooLarge_AreNotShown) {
  make_file("a/file");
  scan();
  DirectoryStore directories(database->handle(), 0);
  const auto root = directories.find(DirectoryStore::parent_of_root(1), "");
  auto row = directories.find(root->id, "a");
  row->subtree.bytes = sum_max;
  directories.put(*row);
  EXPECT_EQ(owners("a"), std::nullopt) << "the sum has reached 2^64 - 1";
  EXPECT_TRUE(owners(""));
}

TEST_F(OwnersScanTest, MoreOwnersThanOneDirectoryMayHave_TheOthersAreOne) {
  if (!is_root()) GTEST_SKIP() << "needs root, to give files away";
  constexpr std::uint32_t more = 5;
  for (std::uint32_t uid = 1; uid <= owners_max + more; ++uid) {
    const std::string path = "a/" + std::to_string(uid);
    make_file(path, 1);
    give(path, uid, 1);
  }
  scan();
  const auto all = owners("");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->size(), owners_max + 1);
  EXPECT_EQ(all->at(other_owners).files, more);
  EXPECT_EQ(all->at(other_owners).bytes, more);
  remove("a");
  mark("a");
  scan();
  EXPECT_EQ(owners("")->size(), 0U);
}

TEST_F(OwnersScanTest, ChangeOfOwnerWithoutAMark_IsFoundByTheAudit) {
  if (!is_root()) GTEST_SKIP() << "needs root, to give files away";
  make_file("a/file", 5);
  options.audit_period = std::chrono::hours(1);
  scan();
  give("a/file", 33, 34);
  clock.advance(std::chrono::hours(2));
  scan();
  EXPECT_EQ(owners("a")->begin()->first, (Owner{33, 34}));
  expect_exact_owners();
}

}  // namespace
}  // namespace spoor::scanner
