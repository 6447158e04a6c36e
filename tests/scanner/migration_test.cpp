// scan.db of 1.0.0: migrated in place, and scanned without a full walk.
#include <gmock/gmock.h>

#include <chrono>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "scanner/database/checksum_vfs.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/store/file_store.h"
#include "tests/scanner/failing_disk.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using std::chrono_literals::operator""h;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t oldest = 4;
constexpr std::int64_t current = 7;

constexpr const char* old_directories = R"sql(
CREATE TABLE old_directories(
  parent INTEGER NOT NULL, name BLOB NOT NULL, id INTEGER NOT NULL,
  inode INTEGER NOT NULL, birth INTEGER NOT NULL, state INTEGER NOT NULL,
  read_scan INTEGER NOT NULL, signature INTEGER NOT NULL,
  own_files INTEGER NOT NULL, own_bytes INTEGER NOT NULL,
  own_allocated INTEGER NOT NULL, own_mtime_ns INTEGER NOT NULL,
  files INTEGER NOT NULL, bytes INTEGER NOT NULL, allocated INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  directories INTEGER NOT NULL, pending INTEGER NOT NULL, mount_points INTEGER NOT NULL,
  entries_signature INTEGER NOT NULL DEFAULT 0, owners BLOB NOT NULL DEFAULT x'',
  PRIMARY KEY(parent, name)
) WITHOUT ROWID)sql";

// Of one directory and all below it.
void put_old(SqliteDatabase& at, DirectoryTables& directories, std::int64_t parent, const DirectoryRow& row) {
  SqliteStatement(
      at, "INSERT INTO old_directories VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
      parent, std::string_view(row.name), row.id, row.inode, static_cast<std::int32_t>(row.birth),
      static_cast<int>(row.state) + (row.is_racy ? 16 : 0), row.is_read ? 1 : 0, row.signature, row.own.files,
      row.own.bytes, row.own.allocated, row.own.mtime_ns, row.subtree.files, row.subtree.bytes,
      row.subtree.allocated, row.subtree.mtime_ns, row.directories, row.pending, row.mount_points,
      row.entries, std::string_view(row.owners))
      .run();
  for (const DirectoryRow& child :
       directories.children(row.id, std::nullopt, std::numeric_limits<std::size_t>::max()))
    put_old(at, directories, row.id, child);
}

void put_old_directories(SqliteDatabase& at) {
  at.exec(old_directories);
  {
    DirectoryTables directories(at);
    SqliteStatement drives(at, "SELECT id FROM drives");
    while (drives.step()) {
      const std::int64_t parent = DirectoryTables::parent_of_root(drives.number(0));
      put_old(at, directories, parent, *directories.find(parent, ""));
    }
  }
  at.exec("DROP TABLE names; DROP TABLE directories; ALTER TABLE old_directories RENAME TO directories");
  if (at.has_table("files")) create_files_trigger(at);
}

class MigrationTest : public ScannedNode {
 protected:
  // Takes from the database what the versions after 1.0.0 added.
  void downgrade() {
    SqliteDatabase& at = database->handle();
    put_old_directories(at);
    at.exec(peers_to_cursors);
    at.exec("PRAGMA user_version = 4");
    at.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.reset();
  }

  std::int64_t version() const {
    SqliteDatabase at(file().native(), SQLITE_OPEN_READONLY, checksum_vfs());
    return at.number("PRAGMA user_version");
  }

  // The next scan begins long after what is on the drive was made.
  void let_time_pass() { clock.set_wall(base::SystemClock().wall_now() + 1h); }

  // As `spoor usage` reads the file.
  std::uint64_t files_for_readers() const {
    auto opened = UsageDatabase::open_read_only(file());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? query_usage(*opened, "", {}).value()->total.files : 0;
  }

  void make_tree() {
    for (const char* const path : {"a/x/1", "a/y/2", "b/z/3", "b/4"}) make_file(path);
  }

  // The directories that changed in the last scan.
  std::set<std::string> changed() {
    std::set<std::string> paths;
    const auto last = latest_scan(*database).value();
    EXPECT_TRUE(read_changes(*database, {.since = last - 1}, [&](const FeedEntry& entry) {
      paths.insert(entry.path);
      return true;
    }));
    return paths;
  }
};

TEST_F(MigrationTest, OlderDatabase_IsScannedByItsMarksAlone) {
  make_tree();
  let_time_pass();
  scan();
  downgrade();
  ASSERT_EQ(version(), oldest);
  EXPECT_EQ(files_for_readers(), 4U) << "until the next scan";
  ASSERT_EQ(version(), oldest);
  reopen_database();
  EXPECT_EQ(version(), current);
  make_file("a/x/new");
  mark("a/x");
  const ScanReport report = scan();
  EXPECT_FALSE(report.record.walked_everything) << report.record.reason;
  EXPECT_EQ(report.record.id, 2U);
  EXPECT_EQ(report.record.figures.dirs_walked, 3U) << "the root, a, a/x";
  EXPECT_EQ(report.record.figures.dirs_skipped, 3U);
  EXPECT_EQ(changed(), std::set<std::string>{"a/x"});
  expect_exact();
  reopen_database();
  EXPECT_EQ(version(), current);
}

TEST_F(MigrationTest, FilesOwnersAndWhatWasLeft_AreKept) {
  options.file_feed = true;
  options.owners_depth = 2;
  make_tree();
  let_time_pass();
  reader.open_errors["a/y"] = EACCES;
  scan();
  downgrade();
  EXPECT_EQ(files_for_readers(), 3U);
  reopen_database();
  EXPECT_EQ(version(), current);
  EXPECT_EQ(database->handle().number("SELECT count(*) FROM sqlite_master WHERE name = 'files_go'"), 1);
  reader.repair();
  std::filesystem::remove_all(on_drive("b"));
  mark("b", tracker::MarkKind::tree);
  EXPECT_FALSE(scan().record.walked_everything);
  expect_exact();
  EXPECT_EQ(database->handle().number("SELECT count(*) FROM files"), 2) << "of a/x and a/y";
}

TEST_F(MigrationTest, KillAtAnyWrite_LeavesTheOldOrTheNewVersion) {
  make_tree();
  scan();
  downgrade();
  std::set<std::int64_t> found;
  const auto migrate = [this] { return UsageDatabase::open(file()).has_value(); };
  const int killed = kill_at_each_write(file(), migrate, [&](bool was_killed) {
    if (was_killed) found.insert(version());
    EXPECT_EQ(files_for_readers(), 4U);
    reopen_database();
    EXPECT_EQ(version(), current);
    EXPECT_FALSE(scan().record.walked_everything);
    expect_exact();
    database.reset();
  });
  EXPECT_GT(killed, 1);
  EXPECT_EQ(found, (std::set<std::int64_t>{oldest, current}));
}

TEST_F(MigrationTest, FullDisk_LeavesTheOldVersionAndIsReported) {
  make_tree();
  scan();
  downgrade();
  for (int at = 1;; ++at) {
    ASSERT_LT(at, 1000);
    {
      const FailingDisk disk(FailingDisk::Fate::full, at);
      const auto opened = UsageDatabase::open(file());
      if (opened && !FailingDisk::has_failed()) break;
      if (!opened) {
        EXPECT_EQ(opened.error().code, Errc::database_failed) << opened.error().message;
        EXPECT_THAT(opened.error().message, HasSubstr(file().native()));
        EXPECT_THAT(opened.error().message, ::testing::AnyOf(HasSubstr("full"), HasSubstr("I/O error")));
      }
    }
    if (version() == current) break;  // what failed came after the commit
    ASSERT_EQ(version(), oldest);
    ASSERT_FALSE(std::filesystem::exists(temp / "scan.db.damaged")) << at;
  }
  reopen_database();
  EXPECT_FALSE(scan().record.walked_everything);
  expect_exact();
}

// More directories than one transaction copies.
class ManyDirectoriesMigrationTest : public MigrationTest {
 protected:
  static constexpr int count = 50'000;

  ManyDirectoriesMigrationTest() {
    make_tree();
    scan();
    downgrade();
    SqliteDatabase at = old();
    at.exec(
        "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 50000) INSERT INTO "
        "directories "
        "SELECT 1000000 + i / 100, CAST(printf('d%06d', i) AS BLOB), i % 7, i, -i, 1, 0, i, 0, 0, 0, 0, 0, "
        "0, 0, 0, 0, "
        "1, 0, i, x'' FROM n");
    at.exec("UPDATE directories SET id = 2000000 + inode WHERE id > 0 AND parent >= 1000000");
  }

  SqliteDatabase old() const { return {file().native(), SQLITE_OPEN_READWRITE, checksum_vfs()}; }

  // Until it is done. Returns how many attempts a full disk ended after something had been copied.
  int migrate_with_failures() {
    std::string copied;
    int stopped = 0;
    for (int at = 15; version() == oldest; at += 5) {
      {
        const FailingDisk disk(FailingDisk::Fate::full, at);
        static_cast<void>(UsageDatabase::open(file()));
      }
      if (version() != oldest) break;
      const std::string before = std::exchange(
          copied,
          old().text(
              "SELECT ifnull((SELECT hex(value) FROM settings WHERE key = 'directories_copied'), '')"));
      if (copied != before && !before.empty()) ++stopped;
      if (between) std::exchange(between, nullptr)();
    }
    return stopped;
  }

  // Those below each parent, as they are stored now.
  std::map<std::int64_t, std::vector<DirectoryRow>> stored() {
    reopen_database();
    DirectoryTables directories(database->handle());
    std::map<std::int64_t, std::vector<DirectoryRow>> all;
    for (std::int64_t parent = 1'000'000; parent <= 1'000'000 + count / 100; ++parent)
      all[parent] = directories.children(parent, std::nullopt, count);
    return all;
  }

  std::function<void()> between;
};

TEST_F(ManyDirectoriesMigrationTest, StoppedByAFullDisk_GoesOnWhereItWas) {
  EXPECT_GT(migrate_with_failures(), 0);
  std::set<std::int64_t> ids;
  int found = 0;
  for (const auto& [parent, rows] : stored()) {
    for (const DirectoryRow& row : rows) {
      ++found;
      ASSERT_EQ(parent, 1'000'000 + static_cast<std::int64_t>(row.inode) / 100);
      ASSERT_EQ(row.signature, row.inode);
      ASSERT_EQ(row.birth, static_cast<std::uint32_t>(-static_cast<int>(row.inode)));
      ASSERT_EQ(row.state, DirectoryState::unread);
      ASSERT_GT(row.id, 0);
      ASSERT_TRUE(ids.insert(row.id).second) << "given twice";
    }
  }
  EXPECT_EQ(found, count);
  EXPECT_LT(std::filesystem::file_size(file().native() + "-wal"), 3U << 20U)
      << "the former table is not logged";
  scan();
  EXPECT_EQ(usage("")->total.files, 4U);
}

// An installation that goes back to 1.0.0 for a while.
TEST_F(ManyDirectoriesMigrationTest, OldVersionScannedMeanwhile_ItsDirectoriesAreCopied) {
  between = [&] {
    SqliteDatabase at = old();
    at.exec(
        "DELETE FROM directories WHERE parent = 1000000; INSERT INTO scans SELECT id + 1, started_at_ns, "
        "finished_at_ns, cycle, 1, 0, '', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 FROM scans ORDER BY id DESC LIMIT 1");
  };
  EXPECT_GT(migrate_with_failures(), 0);
  EXPECT_TRUE(stored()[1'000'000].empty());
  EXPECT_EQ(stored()[1'000'001].size(), 100U);
}

// Version 4 had one row for each name, and others for addresses.
TEST_F(MigrationTest, CursorsByName_BecomePeersByInstance) {
  const auto own = tracker::InstanceId::random();
  const auto instance = tracker::InstanceId::random();
  const std::string none(instance.to_string().size(), '0');
  downgrade();
  {
    SqliteDatabase at(file().native(), SQLITE_OPEN_READWRITE, checksum_vfs());
    const auto insert = [&](const std::string& peer, const std::string& its_instance, int cycle) {
      SqliteStatement(at, "INSERT INTO cursors VALUES(?, ?, ?)", SqliteText{peer}, SqliteText{its_instance},
                      cycle)
          .run();
    };
    insert("own", own.to_string(), 7);
    insert("http://own:7420", own.to_string(), 7);
    insert("http://old-b:7420", none, 0);
    insert("rack/b", instance.to_string(), 8);
    insert("http://b:7420\nrack/b", none, 0);
    insert("http://c:7420\nc", none, 0);
    insert("c", none, 0);
    insert("d", instance.to_string(), 0);
    at.exec("INSERT INTO settings VALUES('roll_position', 'x')");
  }
  const tracker::PeerBook expected = {
      {{"own", own}, {.cycle = {7}, .home = "http://own:7420"}},
      {{"rack/b", instance}, {.cycle = {8}, .home = "http://b:7420"}},
      {{"c", {}}, {.cycle = {}, .home = "http://c:7420"}},
      {{"d", instance}, {.cycle = {}, .standing = tracker::Standing::copied}},
  };
  EXPECT_EQ(UsageDatabase::open_read_only(file()).value().peers().value(), expected)
      << "before the next scan";
  reopen_database();
  EXPECT_EQ(database->peers().value(), expected);
}

}  // namespace
}  // namespace spoor::scanner
