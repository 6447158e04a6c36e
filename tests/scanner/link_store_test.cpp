#include "scanner/store/link_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "scanner/errors.h"
#include "scanner/store/usage_database.h"
#include "tests/support/random.h"
#include "tests/support/temp_directory.h"
#include "tracker/paths/path.h"

namespace spoor::scanner {
namespace {

constexpr auto unsigned_max = std::numeric_limits<std::uint64_t>::max();

TEST(WalkKeyTest, Order_MatchesWalkOrder) {
  const std::vector<std::string> paths = {"", "a", "a/b", "a/b/c", "a/b-c", "a\x01", "a-b", "a-b/c", "ab"};
  for (std::size_t one = 1; one < paths.size(); ++one) {
    EXPECT_LT(walk_key(paths[one - 1]), walk_key(paths[one])) << paths[one];
    EXPECT_TRUE(tracker::is_before_in_walk(paths[one - 1], paths[one])) << paths[one];
  }
}

TEST(WalkKeyTest, CommonAncestor_ContainsBoth) {
  const auto ancestor = [](const char* one, const char* other) {
    const std::string a = walk_key(one);
    const std::string b = walk_key(other);
    EXPECT_EQ(common_ancestor(a, b), common_ancestor(b, a));
    return std::string(common_ancestor(a, b));
  };
  EXPECT_EQ(ancestor("a/b", "a/c"), "a");
  EXPECT_EQ(ancestor("a/b", "a/b/c"), walk_key("a/b"));
  EXPECT_EQ(ancestor("a/b", "a/bc"), "a");
  EXPECT_EQ(ancestor("a", "ab"), "");
  EXPECT_EQ(ancestor("", "a"), "");
  EXPECT_EQ(ancestor("a/b/c/d", "a/b/e"), walk_key("a/b"));
  EXPECT_EQ(ancestor("a/b", "a/b"), walk_key("a/b"));
}

class LinkStoreTest : public ::testing::Test {
 protected:
  explicit LinkStoreTest(std::size_t sorted_max = LinkStore::sorted_max) {
    database_.handle().exec("PRAGMA synchronous = OFF");  // no power cut here, and hundreds of commits
    begin(sorted_max);
  }

  // A scan.
  void begin(std::size_t sorted_max = LinkStore::sorted_max) {
    store_.reset();
    transaction_ = database_.begin_scan().value();
    store_.emplace(database_.handle(), sorted_max);
  }
  void commit() {
    store_->apply_corrections({});
    store_.reset();
    transaction_->commit({});
    transaction_.reset();
  }

  void replace(const std::string& path, const LinkedFiles& files, std::int64_t drive = 1) {
    store_->replace(drive, path, files, false);
  }
  std::uint64_t bytes(const std::string& path, std::int64_t drive = 1) {
    store_->apply_corrections({});
    return store_->correction(drive, path).bytes;
  }
  std::int64_t rows(const std::string& table) {
    return database_.handle().number("SELECT count(*) FROM " + table);
  }
  void expect_no_rows() {
    for (const char* const table : {"links", "link_directories", "link_changes", "link_corrections"}) {
      EXPECT_EQ(rows(table), 0) << table;
    }
  }

  support::TempDirectory temp_;
  UsageDatabase database_ = UsageDatabase::open(temp_ / "scan.db").value();
  std::unique_ptr<ScanTransaction> transaction_;
  std::optional<LinkStore> store_;
};

TEST_F(LinkStoreTest, SizeFoundLast_AppliesToAllDirectories) {
  replace("a", {{7, 10, 0}});
  replace("b", {{7, 10, 0}});
  commit();
  begin();
  replace("b", {{7, 30, 0}});
  EXPECT_EQ(bytes("a"), std::uint64_t{10} - 30) << "its own totals have 10";
  EXPECT_EQ(bytes("b"), 0U);
  EXPECT_EQ(bytes(""), 10U + 30U - 30U);
  commit();
  begin();
  replace("a", {{7, 10, 0}});
  EXPECT_EQ(bytes("a"), 0U) << "read last, and found the same as before";
  EXPECT_EQ(bytes("b"), 20U);
}

TEST_F(LinkStoreTest, DriveWithoutLinks_HasNoRows) {
  replace("a", {});
  replace("", {});
  store_->erase_below(1, "a", {});
  store_->apply_corrections({});
  expect_no_rows();
}

TEST_F(LinkStoreTest, HugeSizes_AreExactModulo64Bits) {
  constexpr std::uint64_t huge = unsigned_max / 2;
  for (const char* path : {"a", "b", "c", "d"}) replace(path, {{unsigned_max, huge, 0}});
  EXPECT_EQ(huge * 4 - bytes(""), huge);
  replace("a", {});
  replace("b", {});
  EXPECT_EQ(bytes(""), huge);
}

TEST_F(LinkStoreTest, StopRequested_IsInterrupted) {
  replace("a", {{7, 10, 0}});
  std::stop_source stop;
  stop.request_stop();
  const auto error_of = [](const auto& call) -> std::error_code {
    try {
      call();
    } catch (const base::Failure& failure) {
      return failure.error.code;
    }
    return {};
  };
  EXPECT_EQ(error_of([&] { store_->apply_corrections(stop.get_token()); }), Errc::interrupted);
  EXPECT_EQ(error_of([&] { store_->erase_below(1, "a", stop.get_token()); }), Errc::interrupted);
}

// What the rows have to come to: a size for each directory and file, and the one that was found last.
struct Model {
  std::map<std::string, std::map<std::uint64_t, std::uint64_t>> directories;
  std::map<std::uint64_t, std::uint64_t> sizes;

  static bool is_below(const std::string& path, const std::string& top) {
    return top.empty() || path == top || path.starts_with(top + "/");
  }

  std::uint64_t correction(const std::string& top) const {
    std::uint64_t sum = 0;
    std::set<std::uint64_t> found;
    for (const auto& [path, files] : directories) {
      if (!is_below(path, top)) continue;
      for (const auto& [inode, bytes] : files) {
        sum += bytes;
        found.insert(inode);
      }
    }
    for (const std::uint64_t inode : found) sum -= sizes.at(inode);
    return sum;
  }
};

class RandomLinkStoreTest : public LinkStoreTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  RandomLinkStoreTest() : LinkStoreTest(GetParam()) {}

  std::string some_path() {
    std::string path;
    for (std::uint64_t depth = random_.below(4); depth > 0; --depth) {
      path = tracker::join_path(path, random_.letters(random_.between(1, 2), 'b'));
    }
    return path;
  }

  void change() {
    const std::int64_t drive = random_.one_in(4) ? 2 : 1;
    Model& model = models_[drive];
    const std::string path = some_path();
    if (random_.one_in(100)) {
      store_->erase_drive(drive);
      model = {};
    } else if (random_.one_in(8)) {
      store_->erase_below(drive, path, {});
      std::erase_if(model.directories, [&](const auto& entry) { return Model::is_below(entry.first, path); });
    } else {
      auto& kept = model.directories[path];
      kept.clear();
      LinkedFiles files;
      for (std::uint64_t inode = 1; inode < 12; ++inode) {
        if (!random_.one_in(3)) continue;
        const auto known = model.sizes.find(inode);
        const bool is_same = known != model.sizes.end() && !random_.one_in(4);
        const std::uint64_t bytes = is_same ? known->second : random_.below(1000);
        files.push_back({inode, bytes, bytes * 512});
        kept[inode] = model.sizes[inode] = bytes;
      }
      replace(path, files, drive);
      if (kept.empty()) model.directories.erase(path);
    }
  }

  void expect_exact() {
    store_->apply_corrections({});
    EXPECT_EQ(rows("link_changes"), 0);
    std::int64_t directories = 0;
    for (const auto& [drive, model] : models_) {
      directories += static_cast<std::int64_t>(model.directories.size());
      std::set<std::string> tops;
      for (const auto& [path, files] : model.directories) {
        for (std::string top = path; tops.insert(top).second && !top.empty();)
          top = tracker::parent_path(top);
      }
      for (const std::string& top : tops) {
        const LinkCorrection found = store_->correction(drive, top);
        ASSERT_EQ(found.bytes, model.correction(top)) << "at '" << top << "'";
        ASSERT_EQ(found.allocated, model.correction(top) * 512);
      }
    }
    EXPECT_EQ(rows("link_directories"), directories);
    EXPECT_EQ(rows("link_corrections WHERE bytes = 0 AND allocated = 0"), 0);
  }

  support::Random random_;
  std::map<std::int64_t, Model> models_;
};

TEST_P(RandomLinkStoreTest, RandomChanges_EachSubtreeCountsEachFileOnce) {
  SCOPED_TRACE(random_.trace());
  for (int scan = 0; scan < 120; ++scan) {
    SCOPED_TRACE("scan " + std::to_string(scan));
    for (std::uint64_t count = random_.below(8); count > 0; --count) change();
    expect_exact();
    if (HasFatalFailure()) return;
    commit();
    begin(GetParam());
  }
  for (auto& [drive, model] : models_) {
    for (const auto& [path, files] : model.directories) replace(path, {}, drive);
  }
  store_->apply_corrections({});
  expect_no_rows();
}

// Sorted in memory, and by the database.
INSTANTIATE_TEST_SUITE_P(SortedMax, RandomLinkStoreTest, ::testing::Values(LinkStore::sorted_max, 2, 0));

}  // namespace
}  // namespace spoor::scanner
