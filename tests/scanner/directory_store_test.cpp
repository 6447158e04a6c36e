#include "scanner/store/directory_store.h"

#include <gtest/gtest.h>

#include <limits>

#include "scanner/errors.h"
#include "scanner/store/usage_database.h"
#include "tests/support/temp_directory.h"

namespace spoor::scanner {
namespace {

constexpr auto unsigned_max = std::numeric_limits<std::uint64_t>::max();
constexpr auto signed_min = std::numeric_limits<std::int64_t>::min();

class DirectoryStoreTest : public ::testing::Test {
 protected:
  DirectoryStore& store() { return transaction_->directories(); }

  DirectoryRow row(const std::string& name, std::int64_t id = 0, std::uint64_t directories = 0) const {
    DirectoryRow made;
    made.name = name;
    made.id = id;
    made.directories = directories;
    return made;
  }

  std::optional<DirectoryRow> find(std::int64_t parent, std::string_view name) {
    return store().find(parent, name);
  }

  support::TempDirectory temp_;
  UsageDatabase database_ = UsageDatabase::open(temp_ / "scan.db").value();
  std::unique_ptr<ScanTransaction> transaction_ = database_.begin_scan().value();
};

TEST_F(DirectoryStoreTest, Row_EveryFieldRoundTrips) {
  DirectoryRow extreme = row("a b\n\xff", std::numeric_limits<std::int64_t>::max());
  extreme.inode = unsigned_max;
  extreme.birth = std::numeric_limits<std::uint32_t>::max();
  extreme.state = DirectoryState::incomplete;
  extreme.is_read = true;
  extreme.is_racy = true;
  extreme.entries = unsigned_max - 1;
  extreme.owners = "owners";
  extreme.signature = std::uint64_t{1} << 63U;
  extreme.own = {unsigned_max, unsigned_max - 2, unsigned_max - 3, signed_min};
  extreme.subtree = {1, 2, 3, -4};
  extreme.directories = unsigned_max - 4;
  extreme.pending = 5;
  extreme.mount_points = 6;
  store().put(1, extreme);
  EXPECT_EQ(find(1, extreme.name), extreme);
}

// Two forms: with the sums of a subtree, and without.
TEST_F(DirectoryStoreTest, EncodedRow_CutOrTooLong_IsRefused) {
  DirectoryRow small = row("a");
  small.own = small.subtree = {1, 200, 300, 4};
  DirectoryRow with_sums = row("a", 1, 7);
  with_sums.own = small.own;
  with_sums.subtree = {50'000, 60'000, 70'000, 8};
  EXPECT_LT(encode_row(small).size(), encode_row(with_sums).size());
  for (const DirectoryRow& each : {small, with_sums}) {
    const std::string bytes = encode_row(each);
    DirectoryRow read;
    ASSERT_TRUE(decode_row(bytes, read));
    EXPECT_EQ(read.subtree, each.subtree);
    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(decode_row(bytes.substr(0, size), read));
    EXPECT_FALSE(decode_row(bytes + '\0', read));
    EXPECT_FALSE(decode_row('\x80' + bytes.substr(1), read)) << "a bit that has no meaning";
  }
}

TEST_F(DirectoryStoreTest, Put_ReplacesExistingRow) {
  store().put(1, row("a", 5));
  store().put(1, row("a", 6));
  EXPECT_EQ(find(1, "a")->id, 6);
}

TEST_F(DirectoryStoreTest, PutOfTheRowAlone_KeepsItsName) {
  store().put(1, row("a", 5));
  DirectoryRow changed = row("a", 5);
  changed.own.bytes = 7;
  store().put(changed);
  EXPECT_EQ(find(1, "a"), changed);
}

TEST_F(DirectoryStoreTest, Children_AreReadByNameInBatches) {
  for (const char* name : {"c", "a", "\xff", "b"}) store().put(1, row(name, store().new_id()));
  store().put(2, row("of another", store().new_id()));
  const auto first = store().children(1, std::nullopt, 2);
  ASSERT_EQ(first.size(), 2U);
  EXPECT_EQ(first[0].name, "a");
  EXPECT_EQ(first[1].name, "b");
  const auto rest = store().children(1, first[1].name, 10);
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[1].name, "\xff");
}

TEST_F(DirectoryStoreTest, Erase_RemovesSubtree) {
  store().put(1, row("a", 2, 3));
  store().put(2, row("b", 3, 1));
  store().put(2, row("c", 4));
  store().put(3, row("d", 5));
  store().put(1, row("z", 6));
  EXPECT_EQ(store().erase(*find(1, "a"), {}), 4U);
  store().put_names(1, {{"a", std::nullopt}});
  EXPECT_FALSE(find(1, "a"));
  EXPECT_FALSE(find(2, "b"));
  EXPECT_FALSE(find(3, "d"));
  EXPECT_TRUE(find(1, "z"));
}

TEST_F(DirectoryStoreTest, NameWithoutARow_IsDamage) {
  store().put_names(1, {{"a", NamedDirectory{.id = 5}}});
  const auto found = guarded("look up", database_.handle(), [&] { return store().find(1, "a"); });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Errc::database_damaged);
}

TEST_F(DirectoryStoreTest, ChildRows_IterateWhileRowsAreWritten) {
  const auto name_of = [](int number) { return std::to_string(10'000 + number); };
  for (int number = 0; number < 2000; ++number) store().put(1, row(name_of(number), store().new_id()));
  ChildRows children(store(), 1);
  for (int number = 0; number < 2000; ++number) {
    DirectoryRow* const at = children.peek();
    ASSERT_NE(at, nullptr);
    ASSERT_EQ(at->name, name_of(number));
    if (number % 2 == 0) {
      store().erase(*at, {});
      store().put_names(1, {{at->name, std::nullopt}});
    } else {
      store().put(1, *at);
    }
    children.pop();
  }
  EXPECT_EQ(children.peek(), nullptr);
}

TEST_F(DirectoryStoreTest, NewId_IsNeverReused) {
  const std::int64_t first = store().new_id();
  EXPECT_EQ(store().new_id(), first + 1);
  transaction_->commit({});
  transaction_ = database_.begin_scan().value();
  EXPECT_EQ(store().new_id(), first + 2);
}

}  // namespace
}  // namespace spoor::scanner
