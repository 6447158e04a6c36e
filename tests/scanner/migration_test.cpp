// scan.db of the last three versions before the current one: migrated in place, and scanned without a full
// walk.
#include <SQLiteCpp/Column.h>
#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <gmock/gmock.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <map>
#include <optional>
#include <set>

#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/store/checksum_vfs.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using std::chrono_literals::operator""h;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int oldest = 2;
constexpr int current = 5;

// What a kill or a full disk does at the write, sync or truncation of this number. Replaces the functions of
// the system's files, so that one is never in use twice. Not thread-safe.
class FailingDisk {
 public:
  enum class Fate : std::uint8_t { killed, full };

  FailingDisk(Fate fate, int at) {
    state() = {.fate = fate, .left = at};
    vfs_ = *sqlite3_vfs_find("unix");
    vfs_.zName = "failing";
    vfs_.xOpen = [](sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* flags_out) {
      sqlite3_vfs* const system = sqlite3_vfs_find("unix");
      const int code = system->xOpen(system, name, file, flags, flags_out);
      if (code == SQLITE_OK) watch(file);
      return code;
    };
    sqlite3_vfs_register(&vfs_, 1);
  }
  FailingDisk(const FailingDisk&) = delete;
  FailingDisk& operator=(const FailingDisk&) = delete;
  ~FailingDisk() {
    sqlite3_vfs_unregister(&vfs_);
    sqlite3_vfs_register(sqlite3_vfs_find("unix"), 1);
  }

  static bool has_failed() { return state().left <= 0; }

 private:
  // SQLite has other functions for a database than for the files beside it.
  struct Watched : sqlite3_io_methods {
    const sqlite3_io_methods* system = nullptr;
  };
  struct State {
    Fate fate = Fate::full;
    int left = 0;
    std::map<const sqlite3_io_methods*, Watched> watched = {};
  };

  static State& state() {
    static State only;
    return only;
  }

  static bool fails() {
    State& at = state();
    if (at.left > 0) --at.left;
    if (at.left > 0) return false;
    if (at.fate == Fate::killed) ::kill(::getpid(), SIGKILL);
    return true;
  }

  static const sqlite3_io_methods& system(const sqlite3_file* file) {
    return *static_cast<const Watched*>(file->pMethods)->system;
  }

  static void watch(sqlite3_file* file) {
    Watched& watched = state().watched[file->pMethods];
    static_cast<sqlite3_io_methods&>(watched) = *file->pMethods;
    watched.system = file->pMethods;
    watched.xWrite = [](sqlite3_file* to, const void* bytes, int count, sqlite3_int64 offset) {
      return fails() ? SQLITE_FULL : system(to).xWrite(to, bytes, count, offset);
    };
    watched.xTruncate = [](sqlite3_file* to, sqlite3_int64 size) {
      return fails() ? SQLITE_IOERR_TRUNCATE : system(to).xTruncate(to, size);
    };
    watched.xSync = [](sqlite3_file* to, int flags) {
      return fails() ? SQLITE_IOERR_FSYNC : system(to).xSync(to, flags);
    };
    file->pMethods = &watched;
  }

  sqlite3_vfs vfs_ = {};
};

class MigrationTest : public ScannedNode {
 protected:
  std::filesystem::path file() const { return UsageDatabase::file_in(temp.path()); }

  // Takes from the database what the versions after this one added.
  void downgrade_to(int version) {
    SQLite::Database& at = database->handle();
    if (version <= 4) at.exec(peers_to_cursors);
    if (version <= 3) {
      at.exec(
          "ALTER TABLE directories DROP COLUMN entries_signature; ALTER TABLE directories DROP COLUMN "
          "owners; "
          "ALTER TABLE links DROP COLUMN owner; INSERT INTO settings VALUES('links_since', '1'); "
          "DELETE FROM settings WHERE key = 'clock'");
    }
    if (version <= 2) {
      at.exec(
          "DROP TABLE links; DROP TABLE link_directories; DROP TABLE link_changes; DROP TABLE "
          "link_corrections; "
          "DELETE FROM settings WHERE key = 'links_since'; UPDATE directories SET state = state & 15");
    }
    at.exec("PRAGMA user_version = " + std::to_string(version));
    at.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.reset();
  }

  int version() const {
    SQLite::Database at(file().native(), SQLite::OPEN_READONLY, 0, checksum_vfs());
    return at.execAndGet("PRAGMA user_version").getInt();
  }

  // The next scan begins before what is on the drive was made, or long after.
  void be_early() { clock.set_wall(base::SystemClock().wall_now() - 1h); }
  void let_time_pass() { clock.set_wall(base::SystemClock().wall_now() + 1h); }

  // As `spoor usage` reads the file.
  std::uint64_t files_for_readers() const {
    auto opened = UsageDatabase::open_read_only(file());
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? query_usage(*opened, "", {}).value()->total.files : 0;
  }

  std::uint64_t bytes(const std::string& path) { return usage(path)->total.bytes; }

  void make_tree() {
    for (const char* const path : {"a/x/1", "a/y/2", "b/z/3", "b/4"}) make_file(path);
  }

  // The directories that changed in the last scan.
  std::set<std::string> changed() {
    std::set<std::string> paths;
    const auto last = latest_scan(*database).value();
    EXPECT_TRUE(
        read_changes(*database, {.since = last - 1, .until = {}, .after = {}}, [&](const FeedEntry& entry) {
          paths.insert(entry.path);
          return true;
        }));
    return paths;
  }
};

class MigrationFromTest : public MigrationTest, public ::testing::WithParamInterface<int> {};

INSTANTIATE_TEST_SUITE_P(Version, MigrationFromTest, ::testing::Range(oldest, current));

TEST_P(MigrationFromTest, OlderDatabase_IsScannedByItsMarksAlone) {
  make_tree();
  let_time_pass();
  scan();
  downgrade_to(GetParam());
  ASSERT_EQ(version(), GetParam());
  EXPECT_EQ(files_for_readers(), 4U) << "until the next scan";
  ASSERT_EQ(version(), GetParam());
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

TEST_P(MigrationFromTest, KillAtAnyWrite_LeavesTheOldOrTheNewVersion) {
  make_tree();
  scan();
  downgrade_to(GetParam());
  const auto saved = temp / "saved";
  std::filesystem::copy_file(file(), saved);
  std::set<int> found;
  int killed = 0;
  for (int at = 1;; ++at) {
    ASSERT_LT(at, 1000);
    for (const char* const suffix : {"", "-wal", "-shm", ".commit"})
      std::filesystem::remove(file().native() + suffix);
    std::filesystem::copy_file(saved, file());
    const pid_t child = ::fork();
    if (child == 0) {
      const FailingDisk disk(FailingDisk::Fate::killed, at);
      ::_exit(UsageDatabase::open(file()) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    if (WIFEXITED(status)) {
      ASSERT_EQ(WEXITSTATUS(status), 0);
      break;
    }
    ASSERT_EQ(WTERMSIG(status), SIGKILL);
    ++killed;
    found.insert(version());
    EXPECT_EQ(files_for_readers(), 4U);
    reopen_database();
    EXPECT_EQ(version(), current);
    EXPECT_FALSE(scan().record.walked_everything);
    expect_exact();
    database.reset();
  }
  EXPECT_GT(killed, 1);
  EXPECT_EQ(found, (std::set<int>{GetParam(), current}));
}

TEST_P(MigrationFromTest, FullDisk_LeavesTheOldVersionAndIsReported) {
  make_tree();
  scan();
  downgrade_to(GetParam());
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
    ASSERT_EQ(version(), GetParam());
    ASSERT_FALSE(std::filesystem::exists(temp / "scan.db.damaged")) << at;
  }
  reopen_database();
  EXPECT_FALSE(scan().record.walked_everything);
  expect_exact();
}

// Databases of version 3 got the columns of version 4 one by one.
TEST_F(MigrationTest, ColumnThatIsThereAlready_IsKept) {
  make_tree();
  scan();
  const auto entries = [this] {
    return database->handle()
        .execAndGet("SELECT entries_signature FROM directories WHERE name = x'61'")
        .getInt64();
  };
  const auto before = entries();
  ASSERT_NE(before, 0);
  database->handle().exec(peers_to_cursors);
  database->handle().exec(
      "ALTER TABLE directories DROP COLUMN owners; ALTER TABLE links DROP COLUMN owner; PRAGMA user_version "
      "= 3");
  reopen_database();
  EXPECT_EQ(version(), current);
  EXPECT_EQ(entries(), before);
  EXPECT_FALSE(scan().record.walked_everything);
  expect_exact();
}

// Version 2 did not store whether a signature proves anything.
TEST_F(MigrationTest, ReadWithinAStepOfItsTimes_CountsAsChangedOnce) {
  make_tree();
  be_early();
  scan();
  downgrade_to(2);
  reopen_database();
  mark("a/x");
  scan();
  EXPECT_EQ(changed(), (std::set<std::string>{"", "a", "a/x"}));
  mark("a/x");
  scan();
  EXPECT_THAT(changed(), IsEmpty());
}

TEST_F(MigrationTest, ReadLongAfterItsTimes_IsUnchanged) {
  make_tree();
  let_time_pass();
  scan();
  downgrade_to(2);
  reopen_database();
  mark("a/x");
  EXPECT_EQ(scan().record.figures.dirs_walked, 3U);
  EXPECT_THAT(changed(), IsEmpty());
  expect_exact();
}

TEST_F(MigrationTest, StartOfTheScanIsNotKept_CountsAsChanged) {
  make_tree();
  let_time_pass();
  scan();
  scan();
  database->handle().exec("DELETE FROM scans WHERE id = 1");
  downgrade_to(2);
  reopen_database();
  mark("a/x");
  scan();
  EXPECT_EQ(changed(), (std::set<std::string>{"", "a", "a/x"}));
}

TEST_F(MigrationTest, FilesReadWithinAStepOfTheirTimes_CountAsChanged) {
  options.file_feed = true;
  make_tree();
  be_early();
  scan();
  downgrade_to(2);
  reopen_database();
  mark("a/x");
  scan();
  std::set<std::string> files;
  EXPECT_TRUE(read_changes(*database, {.since = 1, .until = {}, .after = {}, .files = true},
                           [&](const FeedEntry& entry) {
                             if (entry.is_file) files.insert(entry.path);
                             return true;
                           }));
  EXPECT_EQ(files, std::set<std::string>{"a/x/1"});
}

// Version 2 did not know which files have several names.
TEST_F(MigrationTest, HardLinks_CountOnceWhenTheirDirectoriesWereReadOrAudited) {
  options.audit_period = 10h;
  make_file("a/one", 1000);
  std::filesystem::create_directories(on_drive("b"));
  std::filesystem::create_hard_link(on_drive("a/one"), on_drive("b/two"));
  make_file("c/other", 1);
  let_time_pass();
  scan();
  EXPECT_EQ(bytes(""), 1001U);
  downgrade_to(2);
  reopen_database();
  EXPECT_EQ(bytes(""), 2001U);
  EXPECT_FALSE(scan().record.walked_everything);
  EXPECT_EQ(bytes(""), 2001U) << "until they are read";
  mark("a");
  EXPECT_EQ(scan().record.figures.dirs_walked, 2U);
  EXPECT_EQ(bytes(""), 2001U) << "until both are";
  for (int hour = 0; hour < 11; ++hour) {
    clock.advance(1h);
    const ScanReport report = scan();
    EXPECT_FALSE(report.record.walked_everything);
    EXPECT_THAT(report.audit.missed_paths, IsEmpty());
    EXPECT_THAT(changed(), IsEmpty());
  }
  EXPECT_EQ(bytes(""), 1001U);
  expect_exact();
}

// Nor did it count a file once that has two names in one directory.
TEST_F(MigrationTest, TwoNamesInOneDirectory_CountOnceWhenItIsRead) {
  make_file("a/one", 1000);
  std::filesystem::create_hard_link(on_drive("a/one"), on_drive("a/two"));
  let_time_pass();
  scan();
  database->handle().exec(
      "UPDATE directories SET own_bytes = 2000, own_allocated = 2 * own_allocated, allocated = 2 * "
      "allocated, "
      "bytes = 2000 WHERE name = x'61'; "
      "UPDATE directories SET bytes = 2000, allocated = 2 * allocated WHERE name = x''");
  downgrade_to(2);
  reopen_database();
  EXPECT_EQ(bytes(""), 2000U);
  mark("a");
  scan();
  EXPECT_THAT(changed(), IsEmpty());
  EXPECT_EQ(bytes(""), 1000U);
  expect_exact();
}

// A change elsewhere of a file with several names is no change that its directories' marks missed.
TEST_F(MigrationTest, NameRemovedElsewhere_AuditReportsNoMissedChange) {
  options.audit_period = 10h;
  make_file("a/one", 1000);
  for (const char* const path : {"b/two", "c/three"}) {
    std::filesystem::create_directories(on_drive(path).parent_path());
    std::filesystem::create_hard_link(on_drive("a/one"), on_drive(path));
  }
  let_time_pass();
  scan();
  downgrade_to(2);
  reopen_database();
  remove("c/three");
  mark("c/three", tracker::MarkKind::file);
  for (int hour = 0; hour < 11; ++hour) {
    clock.advance(1h);
    EXPECT_THAT(scan().audit.missed_paths, IsEmpty());
  }
  expect_exact();
}

// Version 4 had one row for each name, and others for addresses.
TEST_F(MigrationTest, CursorsByName_BecomePeersByInstance) {
  const auto instance = tracker::InstanceId::random();
  const std::string none(instance.to_string().size(), '0');
  downgrade_to(4);
  {
    SQLite::Database at(file().native(), SQLite::OPEN_READWRITE, 0, checksum_vfs());
    const auto insert = [&](const std::string& peer, const std::string& its_instance, int cycle) {
      SQLite::Statement row(at, "INSERT INTO cursors VALUES(?, ?, ?)");
      row.bind(1, peer);
      row.bind(2, its_instance);
      row.bind(3, cycle);
      row.exec();
    };
    insert("own", instance.to_string(), 7);
    insert("rack/b", instance.to_string(), 8);
    insert("http://b:7420\nrack/b", none, 0);
    insert("http://c:7420\nc", none, 0);
    insert("http://old-b:7420", none, 0);
    insert("c", none, 0);
    insert("d", instance.to_string(), 0);
    at.exec("INSERT INTO settings VALUES('roll_position', 'x')");
  }
  const tracker::PeerBook expected = {
      {{"own", instance}, {.cycle = {7}}},
      {{"rack/b", instance}, {.cycle = {8}, .home = "http://b:7420"}},
      {{"c", {}}, {.cycle = {}, .home = "http://c:7420"}},
      {{"d", instance}, {.cycle = {}, .standing = tracker::Standing::copied}},
  };
  EXPECT_EQ(UsageDatabase::open_read_only(file()).value().peers().value(), expected)
      << "before the next scan";
  reopen_database();
  EXPECT_EQ(database->peers().value(), expected);
}

// The rows of an older version are not enough to know a listing without reading it.
TEST_F(MigrationTest, DirectoriesOnTheWay_AreReadOnce) {
  trust_times();
  make_tree();
  clock.advance(2h);
  scan();
  clock.advance(2h);
  scan();
  downgrade_to(2);
  reopen_database();
  scan();
  for (const bool is_first : {true, false}) {
    clock.advance(2h);
    mark("a/x");
    scan_counting_reads();
    EXPECT_EQ(was_read("a"), is_first || !reader.changes_times);
  }
  expect_exact();
}

}  // namespace
}  // namespace spoor::scanner
