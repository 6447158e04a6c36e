#include "scanner/store/usage_database.h"

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <set>

#include "scanner/database/checksum_vfs.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/consumers.h"
#include "tests/support/temp_directory.h"
#include "tests/support/umask.h"

namespace spoor::scanner {
namespace {

using tracker::InstanceId;
using tracker::PeerBook;
using tracker::Standing;

class UsageDatabaseTest : public ::testing::Test {
 protected:
  std::filesystem::path file() const { return UsageDatabase::file_in(temp_.path()); }
  UsageDatabase open() const { return UsageDatabase::open(file()).value(); }

  void expect_refused(const base::Result<UsageDatabase>& opened, Errc code, const std::string& word) const {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, code);
    EXPECT_NE(opened.error().message.find(word), std::string::npos) << opened.error().message;
    EXPECT_NE(opened.error().message.find(file().native()), std::string::npos) << opened.error().message;
  }

  support::TempDirectory temp_;
};

TEST_F(UsageDatabaseTest, DatabaseFiles_HaveMode0640WhateverTheUmask) {
  const support::Umask umask(0);
  UsageDatabase database = open();
  auto transaction = database.begin_scan().value();
  transaction->set_setting(start_level_key, "1");
  transaction->commit({});
  auto consumers = Consumers::open(temp_.path());
  ASSERT_TRUE(consumers);
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(temp_.path())) {
    EXPECT_EQ(entry.status().permissions(), std::filesystem::perms(0640)) << entry.path();
    names.insert(entry.path().filename());
  }
  for (const char* name : {"scan.db", "scan.db-wal", "scan.db-shm", "consumers.db"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST_F(UsageDatabaseTest, Peers_RoundTripThroughCommitAndReplaceOthers) {
  const InstanceId instance = InstanceId::random();
  const PeerBook book = {{{"a", instance}, {.cycle = {1}, .home = "http://a:7420"}},
                         {{"a", InstanceId::random()}, {.cycle = {}, .standing = Standing::gone}},
                         {{"rack/b", instance},
                          {.cycle = {tracker::CycleId::value_max},
                           .standing = Standing::copied,
                           .silent = std::chrono::hours(23)}}};
  for (const PeerBook& each : {PeerBook{{{"replaced", InstanceId::random()}, {.cycle = {1}}}}, book}) {
    UsageDatabase database = open();
    auto transaction = database.begin_scan().value();
    transaction->set_peers(each);
    transaction->commit({});
  }
  EXPECT_EQ(open().peers().value(), book);
}

TEST_F(UsageDatabaseTest, StartLevel_RoundTripsThroughCommit) {
  EXPECT_EQ(open().start_level().value(), 0U);
  for (const std::size_t level : {63U, 7U}) {
    UsageDatabase database = open();
    auto transaction = database.begin_scan().value();
    transaction->set_setting(start_level_key, std::to_string(level));
    transaction->commit({});
    EXPECT_EQ(database.start_level().value(), level);
    EXPECT_EQ(UsageDatabase::open_read_only(file()).value().start_level().value(), level);
  }
}

TEST_F(UsageDatabaseTest, InvalidStartLevel_ReadsAsZero) {
  for (const char* text : {"", "64", "-1", "7x", " 7", "x", "18446744073709551616"}) {
    UsageDatabase database = open();
    auto transaction = database.begin_scan().value();
    transaction->set_setting("start_level", text);
    transaction->commit({});
    EXPECT_EQ(database.start_level().value(), 0U) << text;
  }
  UsageDatabase database = open();
  database.handle().exec("UPDATE settings SET value = 7.5 WHERE key = 'start_level'");
  EXPECT_EQ(database.start_level().value(), 0U);
}

TEST_F(UsageDatabaseTest, NoCommit_NothingIsStored) {
  UsageDatabase database = open();
  {
    auto transaction = database.begin_scan().value();
    transaction->set_peers({{{"a", InstanceId::random()}, {.cycle = {1}}}});
    transaction->set_setting(start_level_key, "7");
    transaction->add_drive("/mnt/a");
    transaction->set_setting("key", "value");
    transaction->directories().put(1, DirectoryRow());
  }
  EXPECT_TRUE(database.peers().value().empty());
  EXPECT_EQ(database.start_level().value(), 0U);
  auto transaction = database.begin_scan().value();
  EXPECT_TRUE(transaction->drives().empty());
  EXPECT_TRUE(transaction->is_first());
  EXPECT_FALSE(transaction->setting("key"));
  EXPECT_FALSE(transaction->directories().find(1, ""));
}

TEST_F(UsageDatabaseTest, ScanRecords_AreReadNewestFirst) {
  UsageDatabase database = open();
  ScanRecord record;
  record.started_at = base::WallTime(std::chrono::nanoseconds(123));
  record.finished_at = base::WallTime(std::chrono::nanoseconds(456));
  record.cycle = {7};
  record.walked_everything = true;
  record.partial = true;
  record.reason = "because";
  record.figures = {1, 2, 3, 4, 5};
  record.files = 6;
  record.bytes = ~std::uint64_t{0};
  record.errors = 8;
  database.begin_scan().value()->commit(record);
  database.begin_scan().value()->commit({});
  const auto records = database.scans(10).value();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].id, 2U);
  const ScanRecord& read = records[1];
  EXPECT_EQ(read.id, 1U);
  EXPECT_EQ(read.started_at, record.started_at);
  EXPECT_EQ(read.finished_at, record.finished_at);
  EXPECT_EQ(read.cycle, record.cycle);
  EXPECT_TRUE(read.walked_everything && read.partial);
  EXPECT_EQ(read.reason, "because");
  EXPECT_EQ(read.figures.dirs_walked, 1U);
  EXPECT_EQ(read.figures.dirs_deleted, 5U);
  EXPECT_EQ(read.bytes, record.bytes);
  EXPECT_EQ(read.errors, 8U);
  EXPECT_EQ(database.scans(1).value().size(), 1U);
}

TEST_F(UsageDatabaseTest, OldScanRecords_AreDroppedExceptLastComplete) {
  UsageDatabase database = open();
  ScanRecord partial;
  partial.partial = true;
  database.begin_scan().value()->commit({});
  database.begin_scan().value()->commit({});
  database.handle().exec(
      "WITH RECURSIVE n(i) AS (SELECT 3 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
      "INSERT INTO scans SELECT i, 0, 0, 0, 0, 1, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM n");
  database.begin_scan().value()->commit(partial);
  const auto records = database.scans(100'000).value();
  EXPECT_EQ(records.back().id, 2U);
  database.begin_scan().value()->commit({});
  EXPECT_EQ(database.scans(100'000).value().size(), 10'000U);
}

TEST_F(UsageDatabaseTest, ReaderDuringScan_SeesLastCommit) {
  UsageDatabase database = open();
  database.begin_scan().value()->commit({});
  auto transaction = database.begin_scan().value();
  transaction->set_peers({{{"a", InstanceId::random()}, {.cycle = {1}}}});
  auto reader = UsageDatabase::open_read_only(file());
  ASSERT_TRUE(reader) << reader.error().message;
  EXPECT_TRUE(reader->peers().value().empty());
  EXPECT_EQ(reader->scans(10).value().size(), 1U);
  transaction->commit({});
  EXPECT_EQ(reader->peers().value().size(), 1U);
}

// A reader of the state before keeps a commit from being written back, and one of this state the next commit
// from being written back as a whole: without a sync, SQLite then lets others read the pages that were.
TEST_F(UsageDatabaseTest, CommitWrittenBackInPart_IsWhatReadersSee) {
  UsageDatabase database = open();
  const auto commit = [&](std::int64_t bytes) {
    auto transaction = database.begin_scan().value();
    for (std::int64_t parent = 1; bytes > 0 && parent <= 200; ++parent) {
      DirectoryRow row;
      row.name = "directory";
      row.id = 1000 + parent;
      row.own.bytes = static_cast<std::uint64_t>(bytes);
      transaction->directories().put(parent, row);
    }
    transaction->commit({});
  };
  const auto sum = [](UsageDatabase& reader) {
    std::uint64_t sum = 0;
    DirectoryTables directories(reader.handle());
    for (std::int64_t parent = 1; parent <= 200; ++parent)
      sum += directories.find(parent, "directory")->own.bytes;
    return sum;
  };
  const auto begin_reading = [&] {
    UsageDatabase reader = UsageDatabase::open_read_only(file()).value();
    reader.handle().exec("BEGIN; SELECT count(*) FROM directories");
    return reader;
  };
  commit(1);
  std::optional<UsageDatabase> before(begin_reading());
  commit(2);
  const UsageDatabase between = begin_reading();
  before.reset();
  commit(0);  // no directory: those of the commit before are read from the database
  UsageDatabase reader = UsageDatabase::open_read_only(file()).value();
  EXPECT_EQ(sum(reader), 400U);
}

// Else a log would pass as that of an older copy of the file. SQLite counts only what writes to the header.
TEST_F(UsageDatabaseTest, CommitThatNeedsNoPage_IsCountedInTheFile) {
  std::set<std::string> counters;
  for (int count = 0; count < 5; ++count) {
    UsageDatabase database = open();
    database.begin_scan().value()->commit({});
    database.empty_log();
    std::ifstream stream(file(), std::ios::binary);
    std::string counter(4, '\0');
    stream.seekg(24).read(counter.data(), 4);
    counters.insert(counter);
  }
  EXPECT_EQ(counters.size(), 5U);
}

TEST_F(UsageDatabaseTest, ReadOnlyDatabase_RefusesWrites) {
  {
    open();
  }
  UsageDatabase reader = UsageDatabase::open_read_only(file()).value();
  const auto transaction = reader.begin_scan();
  if (transaction) {
    EXPECT_THROW((*transaction)->set_setting("key", "value"), SqliteError);
  }
}

TEST_F(UsageDatabaseTest, MissingDatabase_ReaderGetsNotFound) {
  const auto opened = UsageDatabase::open_read_only(file());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, std::errc::no_such_file_or_directory);
  EXPECT_FALSE(std::filesystem::exists(file()));
}

// Those that no released Spoor wrote, too.
TEST_F(UsageDatabaseTest, OtherFormats_AreRefusedAndKept) {
  for (const std::string version : {"99", "6", "3"}) {
    open().handle().exec("PRAGMA user_version = " + version);
    expect_refused(UsageDatabase::open(file()), Errc::database_unusable, version);
    expect_refused(UsageDatabase::open_read_only(file()), Errc::database_unusable, version);
    SqliteDatabase(file().native(), SQLITE_OPEN_READWRITE, checksum_vfs()).exec("PRAGMA user_version = 7");
  }
}

TEST_F(UsageDatabaseTest, DatabaseOfAnotherProgram_IsRefusedAndKept) {
  {
    SqliteDatabase other(file().native(), SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    other.exec("CREATE TABLE things(id INTEGER)");
  }
  expect_refused(UsageDatabase::open(file()), Errc::database_unusable, "not a scan database");
  SqliteDatabase other(file().native(), SQLITE_OPEN_READONLY);
  EXPECT_FALSE(other.has_table("directories"));
}

TEST_F(UsageDatabaseTest, MissingDirectory_IsAnError) {
  const auto opened = UsageDatabase::open("/nonexistent/spoor/scan.db");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::database_failed);
}

TEST_F(UsageDatabaseTest, DirectoryRow_StaysUnder150Bytes) {
  UsageDatabase database = open();
  auto transaction = database.begin_scan().value();
  DirectoryRow row;
  constexpr int count = 50'000;
  for (int number = 0; number < count; ++number) {
    row.name = "directory-" + std::to_string(1'000'000 + number);
    row.id = 100'000'000 + number;
    row.inode = 3'000'000'000U + static_cast<unsigned>(number);
    row.birth = 0xDEADBEEF;
    row.is_read = true;
    row.signature = 0xFEDCBA9876543210U;
    row.own = row.subtree = {50, 5'000'000'000, 5'000'000'000, 1'700'000'000'123'456'789};
    row.directories = 3;
    transaction->directories().put(90'000'000 + number / 100, row);
  }
  transaction->commit({});
  database.handle().exec("PRAGMA wal_checkpoint(TRUNCATE)");
  EXPECT_LT(std::filesystem::file_size(file()), 150U * count);
}

TEST_F(UsageDatabaseTest, Statement_IsPreparedWhenItIsFirstUsed) {
  UsageDatabase database = open();
  SqliteStatement query(database.handle(), "SELECT a FROM later");
  query.reset();
  database.handle().exec("CREATE TABLE later(a); INSERT INTO later VALUES(7)");
  ASSERT_TRUE(query.step());
  EXPECT_EQ(query.number(0), 7);
}

}  // namespace
}  // namespace spoor::scanner
