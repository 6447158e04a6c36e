#include "scanner/store/file_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/store/usage_database.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"
#include "tests/support/temp_directory.h"

namespace spoor::scanner {
namespace {

using Entries = std::map<std::string, std::uint64_t>;

constexpr std::int64_t directory = 5;

Files files_of(const Entries& entries) {
  Files files;
  for (const auto& [name, signature] : entries) files.add(name, signature);
  return files;
}

std::string written(const Entries& entries) {
  FileChunkWriter out;
  for (const auto& [name, signature] : entries) out.add({name, signature});
  return out.take();
}

// Nothing where the bytes are no chunk.
std::optional<Entries> read(std::string_view bytes) {
  FileChunkReader in(bytes);
  Entries entries;
  std::string last;
  while (const auto file = in.next()) {
    EXPECT_LT(last, file->name);
    last = file->name;
    entries.emplace(file->name, file->signature);
  }
  return in.ok() ? std::optional(entries) : std::nullopt;
}

TEST(FileChunkTest, RandomFiles_RoundTrip) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 300; ++round) {
    Entries entries;
    for (std::uint64_t left = random.below(40); left > 0; --left) {
      std::string name = random.letters(random.below(4), 'b') + random.bytes(random.between(1, 800));
      std::ranges::replace_if(name, [](char byte) { return byte == '/' || byte == '\0'; }, '_');
      entries[name] = random.next();
    }
    EXPECT_EQ(read(written(entries)), entries);
  }
}

TEST(FileChunkTest, CommonPrefixes_AreShared) {
  const Entries entries{{"2026-11-01.log", 1}, {"2026-11-02.log", 2}, {"2026-11-02.log.gz", 3}};
  EXPECT_EQ(written(entries).size(), 3 * 12 + 14 + 5 + 3U);
}

// NTFS and exFAT count 16-bit units: 255 of them are up to 765 bytes.
TEST(FileChunkTest, NamesLongerThan255Bytes_RoundTrip) {
  const Entries entries{{std::string(254, 'n'), 1},
                        {std::string(255, 'n'), 2},
                        {std::string(256, 'n'), 3},
                        {std::string(300, 'n') + std::string(465, 'o'), 4},
                        {std::string(65'535, 'z'), 5}};
  EXPECT_EQ(read(written(entries)), entries);
}

std::string entry(std::uint16_t shared, std::uint16_t rest_bytes, std::string_view rest) {
  base::ByteWriter out;
  out.u16(shared);
  out.u16(rest_bytes);
  out.raw(rest);
  out.u64(7);
  return out.take();
}

TEST(FileChunkTest, MalformedChunk_IsRefused) {
  EXPECT_EQ(read(entry(0, 1, "a")), (Entries{{"a", 7}}));
  const std::string long_name(40'000, 'x');
  const std::map<std::string, std::string> bad{
      {"no name", entry(0, 0, "")},
      {"shares what is not there", entry(1, 1, "a")},
      {"twice", entry(0, 1, "a") + entry(1, 0, "")},
      {"out of order", entry(0, 1, "b") + entry(0, 1, "a")},
      {"out of order behind what is shared", entry(0, 2, "ab") + entry(1, 1, "a")},
      {"a slash", entry(0, 3, "a/b")},
      {"a NUL", entry(0, 3, std::string_view("a\0b", 3))},
      {"too long", entry(0, 40'000, long_name) + entry(40'000, 25'536, long_name.substr(0, 25'536))},
      {"cut in the signature", entry(0, 1, "a").substr(0, 11)},
      {"cut in the name", entry(0, 9, "a")},
      {"cut in the head", std::string(3, '\0')}};
  for (const auto& [what, bytes] : bad) EXPECT_EQ(read(bytes), std::nullopt) << what;
}

TEST(FileChunkTest, RandomBytes_ReadingTerminates) {
  SPOOR_RANDOM(random);
  Entries entries;
  for (int i = 0; i < 20; ++i) entries[random.letters(6, 'c')] = random.next();
  const std::string good = written(entries);
  for (int round = 0; round < 5000; ++round) {
    std::string bytes = good;
    for (std::uint64_t left = random.between(1, 4); left > 0; --left)
      bytes[random.below(bytes.size())] = random.byte();
    if (random.one_in(3)) bytes.resize(random.below(bytes.size()));
    read(bytes);
    read(random.bytes(random.below(100)));
  }
}

class FileStoreTest : public ::testing::Test {
 protected:
  FileStoreTest() {
    database_.handle().exec("PRAGMA synchronous = OFF");  // no power cut here
    create_file_tables(database_.handle());
  }

  // What is stored of all, in the order of the rows, which has to be that of the names.
  Entries stored(std::int64_t of = directory) {
    Entries entries;
    std::string last;
    for (std::uint64_t number = 0;;) {
      const auto chunk = store().chunk_from(of, number);
      if (!chunk) return entries;
      number = chunk->number + 1;
      EXPECT_LE(chunk->bytes.size(), FileStore::chunk_bytes_max);
      EXPECT_FALSE(chunk->bytes.empty());
      FileChunkReader in(chunk->bytes);
      while (const auto file = in.next()) {
        EXPECT_LT(last, file->name);
        last = file->name;
        entries.emplace(file->name, file->signature);
      }
      EXPECT_TRUE(in.ok());
    }
  }

  std::map<std::string, Change> update(const Entries& entries) {
    std::map<std::string, Change> told;
    store().update(directory, files_of(entries), [&](std::string_view name, Change change) {
      EXPECT_TRUE(told.emplace(name, change).second) << name << " is told twice";
    });
    return told;
  }

  std::int64_t chunks() { return database_.handle().number("SELECT count(*) FROM files"); }

  FileStore& store() {
    if (!store_) store_.emplace(database_.handle());
    return *store_;
  }

  support::TempDirectory temp_;
  UsageDatabase database_ = UsageDatabase::open(temp_ / "scan.db").value();
  std::optional<FileStore> store_;
};

// Long names, for few files to fill a chunk.
std::string name_of(std::uint64_t number) {
  return std::to_string(100'000'000 + number * 7919 % 10'000'019) +
         std::string(150, static_cast<char>('a' + number % 26));
}

TEST_F(FileStoreTest, Update_ReportsDifferencesAndStoresFiles) {
  EXPECT_FALSE(store().has(directory));
  EXPECT_EQ(update({{"a", 1}, {"b", 2}, {"c", 3}}).size(), 3U);
  EXPECT_TRUE(store().has(directory));
  const auto told = update({{"a", 1}, {"b", 20}, {"d", 4}});
  EXPECT_EQ(told, (std::map<std::string, Change>{
                      {"b", Change::changed}, {"c", Change::deleted}, {"d", Change::created}}));
  EXPECT_EQ(stored(), (Entries{{"a", 1}, {"b", 20}, {"d", 4}}));
  EXPECT_TRUE(update({{"a", 1}, {"b", 20}, {"d", 4}}).empty());
  EXPECT_EQ(update({}).size(), 3U);
  EXPECT_FALSE(store().has(directory));
}

TEST_F(FileStoreTest, ManyFiles_AreKeptInSmallRows) {
  SPOOR_RANDOM(random);
  database_.handle().exec("BEGIN");
  Entries entries;
  std::uint64_t next = 0;
  for (; next < 3000; ++next) entries[name_of(next)] = next;
  store().add(directory, files_of(entries));
  ASSERT_GT(chunks(), 10);
  for (int round = 0; round < (support::is_sanitized ? 20 : 60); ++round) {
    const Entries before = entries;
    for (std::uint64_t left = random.below(random.one_in(4) ? 2000 : 5); left > 0; --left)
      entries[name_of(++next)] = 1;
    for (std::uint64_t left = random.below(random.one_in(4) ? 2000 : 5); left > 0 && !entries.empty();
         --left) {
      const auto found = entries.lower_bound(name_of(random.below(next)));
      if (found == entries.end()) continue;
      if (random.one_in(2)) {
        found->second = random.next();
      } else {
        entries.erase(found);
      }
    }
    // All behind some name are gone, or new: the last chunks.
    if (random.one_in(6)) entries.erase(entries.lower_bound("1050"), entries.end());
    if (random.one_in(6))
      for (int i = 0; i < 2000; ++i) entries["2" + name_of(++next)] = 1;
    const auto told = update(entries);
    EXPECT_EQ(stored(), entries);
    std::map<std::string, Change> expected;
    for (const auto& [name, signature] : entries) {
      const auto found = before.find(name);
      if (found == before.end()) expected[name] = Change::created;
      if (found != before.end() && found->second != signature) expected[name] = Change::changed;
    }
    for (const auto& [name, signature] : before) {
      if (!entries.contains(name)) expected[name] = Change::deleted;
    }
    EXPECT_EQ(told, expected);
    if (HasFailure()) return;
  }
}

TEST_F(FileStoreTest, OneOfManyFilesChanged_WritesOneRow) {
  Entries entries;
  for (std::uint64_t number = 0; number < 3000; ++number) entries[name_of(number)] = number;
  store().add(directory, files_of(entries));
  entries.begin()->second = 999'999;
  const int before = sqlite3_total_changes(database_.handle().handle());
  EXPECT_EQ(update(entries).size(), 1U);
  EXPECT_EQ(sqlite3_total_changes(database_.handle().handle()) - before, 1);
}

TEST_F(FileStoreTest, SeekBehindAnyName_FindsNextFile) {
  SPOOR_RANDOM(random);
  Entries entries;
  for (std::uint64_t number = 0; number < 3000; ++number) entries[name_of(number)] = number;
  store().add(directory, files_of(entries));
  entries.erase(entries.lower_bound("1020"), entries.lower_bound("1050"));  // numbers that are not taken
  update(entries);
  for (int round = 0; round < 200; ++round) {
    const std::string after =
        random.one_in(2) ? name_of(random.below(3000)) : std::to_string(random.below(2000));
    StoredFiles walk(store(), directory);
    walk.seek_behind(after);
    const auto expected = entries.upper_bound(after);
    const std::string* const found = walk.peek();
    ASSERT_EQ(found == nullptr, expected == entries.end());
    if (found != nullptr) {
      EXPECT_EQ(*found, expected->first);
    }
  }
}

TEST_F(FileStoreTest, DirectoryErased_FilesAreErased) {
  auto transaction = database_.begin_scan().value();
  DirectoryRow row;
  row.name = "a";
  for (const std::int64_t id : {4, 5, 6}) {
    row.id = id;
    row.name += 'a';
    transaction->directories().put(3, row);
    store().add(id, files_of({{"x", 1}}));
  }
  DirectoryRow above;
  above.id = 3;
  above.name = "above";
  above.directories = 3;
  store().add(3, files_of({{"x", 1}}));
  transaction->directories().put(1, above);
  transaction->directories().put(1, above);  // replaced by itself
  EXPECT_EQ(chunks(), 4);
  transaction->directories().erase(row, {});
  transaction->directories().put_names(3, {{row.name, std::nullopt}});
  EXPECT_TRUE(stored(6).empty());
  EXPECT_EQ(chunks(), 3);
  transaction->directories().erase(above, {});
  EXPECT_EQ(chunks(), 0);
}

TEST_F(FileStoreTest, UnreadableChunk_IsDatabaseDamage) {
  store().add(directory, files_of({{"a", 1}}));
  database_.handle().exec("UPDATE files SET entries = x'0500'");
  EXPECT_THROW(store().update(directory, files_of({{"a", 1}}), [](std::string_view, Change) {}), SqliteError);
  StoredFiles walk(store(), directory);
  EXPECT_THROW(walk.peek(), SqliteError);
}

}  // namespace
}  // namespace spoor::scanner
