// scan.db of 1.0.0: migrated in place, and scanned without a full walk.
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

constexpr int oldest = 4;
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

  // Takes from the database what the versions after 1.0.0 added.
  void downgrade() {
    SQLite::Database& at = database->handle();
    at.exec(peers_to_cursors);
    at.exec("PRAGMA user_version = " + std::to_string(oldest));
    at.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    database.reset();
  }

  int version() const {
    SQLite::Database at(file().native(), SQLite::OPEN_READONLY, 0, checksum_vfs());
    return at.execAndGet("PRAGMA user_version").getInt();
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
    EXPECT_TRUE(
        read_changes(*database, {.since = last - 1, .until = {}, .after = {}}, [&](const FeedEntry& entry) {
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

TEST_F(MigrationTest, KillAtAnyWrite_LeavesTheOldOrTheNewVersion) {
  make_tree();
  scan();
  downgrade();
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
  EXPECT_EQ(found, (std::set<int>{oldest, current}));
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

// Version 4 had one row for each name, and others for addresses.
TEST_F(MigrationTest, CursorsByName_BecomePeersByInstance) {
  const auto instance = tracker::InstanceId::random();
  const std::string none(instance.to_string().size(), '0');
  downgrade();
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

}  // namespace
}  // namespace spoor::scanner
