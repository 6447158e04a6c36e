#include "scanner/store/directory_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>

#include "scanner/database/sqlite.h"
#include "scanner/store/directory_store.h"
#include "tests/support/random.h"

namespace spoor::scanner {
namespace {

using Names = std::map<std::string, NamedDirectory, std::less<>>;

class DirectoryNamesTest : public ::testing::Test {
 protected:
  DirectoryNamesTest() { create_directory_tables(database_); }

  Names stored(std::int64_t parent, const std::optional<std::string>& after = std::nullopt) {
    Names all;
    std::string last;
    names_.for_each(parent, after, [&](std::string_view name, const NamedDirectory& directory) {
      EXPECT_TRUE(all.empty() || last < name) << last << " before " << name;
      last = name;
      all.emplace(name, directory);
      return true;
    });
    return all;
  }

  std::int64_t chunks() { return database_.number("SELECT count(*) FROM names"); }

  // Names of so many bytes, from `first` on.
  static NameChanges numbered(int first, int count, std::size_t bytes = 100) {
    NameChanges changes;
    for (int number = first; number < first + count; ++number) {
      std::string name = std::to_string(1'000'000 + number);
      name.resize(bytes, 'x');
      changes[name] = NamedDirectory{number + 1, static_cast<std::uint64_t>(number), 7};
    }
    return changes;
  }

  SqliteDatabase database_{":memory:", SQLITE_OPEN_READWRITE};
  DirectoryNames names_{database_};
};

// Ids and inodes in any order, identities of all bits, a root's empty name, and names that share much or
// nothing.
TEST_F(DirectoryNamesTest, EveryField_RoundTrips) {
  const Names expected = {{"", {1, 0, 0}},
                          {"a", {std::numeric_limits<std::int64_t>::max(), 1, 0xFFFFFFFF}},
                          {"a\n\xff", {2, std::numeric_limits<std::uint64_t>::max(), 1}},
                          {"ab", {3, 5, 2}},
                          {std::string(65'535, 'b'), {4, 4, 3}}};
  NameChanges changes;
  for (const auto& [name, directory] : expected) changes[name] = directory;
  names_.apply(-3, changes);
  EXPECT_EQ(stored(-3), expected);
  for (const auto& [name, directory] : expected) EXPECT_EQ(names_.find(-3, name), directory);
  EXPECT_EQ(names_.find(-3, "c"), std::nullopt);
  EXPECT_TRUE(stored(3).empty());
  EXPECT_TRUE(stored(-2).empty());
}

TEST_F(DirectoryNamesTest, AllGone_NothingIsStored) {
  names_.apply(1, {{"a", NamedDirectory{2}}});
  names_.apply(1, {{"a", std::nullopt}, {"never there", std::nullopt}});
  EXPECT_EQ(chunks(), 0);
  EXPECT_EQ(names_.find(1, "a"), std::nullopt);
}

// As a walk writes a new directory, some hundred at a time.
TEST_F(DirectoryNamesTest, ManyNamesInOrder_AreInChunksOfTheirNames) {
  for (int first = 0; first < 10'000; first += 500) names_.apply(1, numbered(first, 500));
  EXPECT_EQ(stored(1).size(), 10'000U);
  EXPECT_GT(chunks(), 2);
  const auto last = database_.number("SELECT max(length(entries)) FROM names");
  EXPECT_LE(last, std::int64_t{DirectoryNames::chunk_bytes_max});
}

// All chunks overflow, one after the other.
TEST_F(DirectoryNamesTest, LargeDirectoryThatGrowsEverywhere_WritesAboutWhatItGets) {
  constexpr int count = 20'000;
  constexpr int at_once = 512;
  const auto add = [&](char letter) {
    for (int first = 0; first < count; first += at_once) {
      NameChanges changes;
      for (int number = first; number < std::min(first + at_once, count); ++number)
        changes[std::to_string(1'000'000 + number) + std::string(40, letter)] = NamedDirectory{number + 1};
      names_.apply(1, changes);
    }
  };
  add('a');
  const auto before = sqlite3_total_changes(database_.handle());
  for (const char letter : {'b', 'c', 'd'}) add(letter);
  EXPECT_EQ(stored(1).size(), 4 * count);
  EXPECT_LT(sqlite3_total_changes(database_.handle()) - before, 1'500);
}

TEST_F(DirectoryNamesTest, NamesGoneInTheMiddle_OthersAreFoundAndAdded) {
  const NameChanges all = numbered(0, 5'000);
  names_.apply(1, all);
  NameChanges gone = numbered(100, 4'800);
  for (auto& [name, directory] : gone) directory.reset();
  names_.apply(1, gone);
  for (const auto& [name, directory] : all)
    ASSERT_EQ(names_.find(1, name), gone.contains(name) ? std::nullopt : directory);
  for (const auto& [name, directory] : gone) {
    if (directory || name.find("77") == std::string::npos) continue;
    names_.apply(1, {{name, NamedDirectory{9'999}}});
    ASSERT_EQ(names_.find(1, name)->id, 9'999);
  }
  EXPECT_EQ(stored(1, numbered(4'899, 1).begin()->first).size(), 100U);
}

// Always between the same two: the numbers between their chunks are used up again and again.
TEST_F(DirectoryNamesTest, NamesAddedInOnePlace_AreMovedApart) {
  names_.apply(1, numbered(0, 2'000));
  for (int round = 0; round < 60; ++round) {
    NameChanges changes;
    for (int number = 0; number < 300; ++number) {
      const int position = round % 2 == 0 ? round * 300 + number : 40'000 - round * 300 - number;
      changes["1000500m" + std::to_string(100'000 + position) + std::string(100, 'n')] =
          NamedDirectory{5'000 + position};
    }
    names_.apply(1, changes);
  }
  EXPECT_EQ(stored(1).size(), 2'000U + 60 * 300);
  EXPECT_EQ(names_.find(1, "1000500m100007" + std::string(100, 'n'))->id, 5'007);
}

TEST_F(DirectoryNamesTest, RandomChanges_StoreWhatAMapHas) {
  SPOOR_RANDOM(random);
  std::map<std::int64_t, Names> expected;
  const auto some_name = [&] {
    return random.letters(random.between(1, 3)) + std::string(random.below(3) * 100, 'n');
  };
  for (int round = 0; round < 150; ++round) {
    const auto parent = static_cast<std::int64_t>(random.between(1, 3));
    NameChanges changes;
    for (std::uint64_t count = random.between(1, 800); count > 0; --count) {
      auto& change = changes[some_name()];
      if (!random.one_in(3))
        change = NamedDirectory{static_cast<std::int64_t>(random.between(1, 1'000)), random.next(), 9};
    }
    names_.apply(parent, changes);
    Names& its = expected[parent];
    for (const auto& [name, change] : changes) {
      its.erase(name);
      if (change) its.emplace(name, *change);
    }
    if (round % 10 != 0) continue;
    ASSERT_EQ(stored(parent), its);
    const std::string after = some_name();
    ASSERT_EQ(stored(parent, after), Names(its.upper_bound(after), its.end()));
    for (int lookups = 0; lookups < 200; ++lookups) {
      const std::string name = some_name();
      const auto found = its.find(name);
      ASSERT_EQ(names_.find(parent, name), found == its.end() ? std::nullopt : std::optional(found->second))
          << name;
    }
  }
}

TEST_F(DirectoryNamesTest, EveryCutOrChangedByte_IsReadOrRefused) {
  NameChunkWriter writer;
  writer.add("alpha", {5, 10, 3});
  const std::size_t first_bytes = writer.size_bytes();
  writer.add("alphabet", {6, 9, 2});
  const std::string whole = writer.take();
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(value);
      NameChunkReader reader(bytes);
      std::string last;
      for (bool is_first = true; reader.next(); is_first = false) {
        ASSERT_TRUE(is_first || last < reader.name());
        last = reader.name();
      }
    }
    NameChunkReader cut(std::string_view(whole).substr(0, at));
    while (cut.next()) {
    }
    EXPECT_EQ(cut.ok(), at == 0 || at == first_bytes) << at;
  }
}

TEST_F(DirectoryNamesTest, UnreadableChunk_IsDamage) {
  names_.apply(1, {{"a", NamedDirectory{2}}});
  database_.exec("UPDATE names SET entries = x'0501'");
  EXPECT_THROW(names_.find(1, "a"), SqliteError);
  EXPECT_THROW(stored(1), SqliteError);
  EXPECT_THROW(names_.apply(1, {{"b", NamedDirectory{3}}}), SqliteError);
}

}  // namespace
}  // namespace spoor::scanner
