// Bytes of scan.db and its log that change on the disk: totals are right or refused, never wrong, and the
// next scan makes them right again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <optional>

#include "scanner/database/checksum_vfs.h"
#include "scanner/database/database_files.h"
#include "scanner/database/sqlite.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "tests/scanner/scanned_node.h"
#include "tests/support/random.h"
#include "tests/support/sanitizer.h"

namespace spoor::scanner {
namespace {

constexpr int rounds = support::is_sanitized ? 15 : 60;

using ::testing::HasSubstr;
using ::testing::Not;
namespace fs = std::filesystem;

class DamagedDatabaseTest : public ScannedNode {
 protected:
  DamagedDatabaseTest() { commits_each = 24; }  // scans of hundreds of directories

  fs::path log() const { return temp / "scan.db-wal"; }

  void make_tree(int directories) {
    for (int number = 0; number < directories; ++number) {
      make_file("top" + std::to_string(number % 7) + "/middle" + std::to_string(number % 50) + "/directory-" +
                    std::to_string(number) + "/file",
                static_cast<std::size_t>(number));
    }
  }

  void close() { database.reset(); }

  // What was committed is in the file.
  void close_with_empty_log() {
    database->empty_log();
    close();
    ASSERT_EQ(fs::file_size(log()), 0U);
  }

  void overwrite(const fs::path& path, std::uint64_t offset, const std::string& bytes) {
    std::fstream stream(path, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(offset));
    stream << bytes;
  }

  // Random bytes at a random place, or one byte, or zeros.
  void damage(const fs::path& path) {
    const std::uint64_t size = fs::file_size(path);
    ASSERT_GT(size, 0U);
    const std::size_t bytes = random.pick(std::vector<std::size_t>{1, 8, 512, 4096});
    const bool zeros = random.one_in(4);
    std::string with = zeros ? std::string(bytes, '\0') : random.bytes(bytes);
    const std::uint64_t offset = random.one_in(4) ? random.below(size) / 4096 * 4096 : random.below(size);
    with.resize(std::min<std::uint64_t>(with.size(), size - offset));
    SCOPED_TRACE(path.native() + " at " + std::to_string(offset));
    overwrite(path, offset, with);
  }

  // What `spoor usage` shows, of all directories; nothing where it fails.
  std::optional<std::map<std::string, Measured>> shown() const {
    auto opened = UsageDatabase::open_read_only(file());
    if (!opened) return std::nullopt;
    UsageOptions all;
    all.depth = 100'000;
    const auto found = query_usage(*opened, "", all);
    return found && *found ? std::optional(totals_of(**found)) : std::nullopt;
  }

  // As measured, or not at all.
  void expect_right_or_refused(const std::map<std::string, Measured>& measured) {
    const auto totals = shown();
    ++(totals ? right : refused);
    if (totals) {
      ASSERT_TRUE(*totals == measured);
    }
    // One directory, without a look at all others.
    const auto& [path, expected] =
        *std::next(measured.begin(), static_cast<std::ptrdiff_t>(random.below(measured.size())));
    auto opened = UsageDatabase::open_read_only(file());
    if (!opened) return;
    const auto found = query_usage(*opened, path, {.depth = 0});
    if (!found) return;
    ASSERT_TRUE(*found) << path << " is not known any more";
    ASSERT_EQ(totals_of(**found).at(path), expected) << path;
  }

  // As `spoor scan` does.
  std::optional<ScanReport> scan_or_rebuild() {
    auto opened = UsageDatabase::open(file());
    if (!opened) return rebuild(opened.error());
    database = std::make_unique<UsageDatabase>(std::move(*opened));
    auto report = try_scan();
    if (report) return *report;
    close();
    return rebuild(report.error());
  }

  std::optional<ScanReport> rebuild(const base::Error& found) {
    EXPECT_EQ(found.code, Errc::database_damaged) << found.message;
    begin_rebuild(found.message);
    auto report = try_scan();
    finish_rebuild();
    return report ? std::optional(*report) : std::nullopt;
  }

  void change_something(int round) {
    const std::string path = "top" + std::to_string(random.below(7)) + "/new-" + std::to_string(round % 20);
    make_file(path + "/file", 1 + random.below(5000));
    mark(path);
  }

  support::Random random;
  int right = 0;
  int refused = 0;
  int rebuilt = 0;
};

TEST_F(DamagedDatabaseTest, RandomCorruption_TotalsAreCorrectOrRefused) {
  SCOPED_TRACE(random.trace());
  make_tree(400);
  scan();
  auto measured = measure({drive()});
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    close_with_empty_log();
    damage(file());
    // Sometimes nobody looks before the scan.
    if (random.one_in(2)) expect_right_or_refused(measured);
    change_something(round);
    measured = measure({drive()});
    const auto report = scan_or_rebuild();
    ASSERT_TRUE(report);
    if (report->record.reason.find("damaged") != std::string::npos) ++rebuilt;
    // What no scan needed to read may be damaged still; then it says so.
    expect_right_or_refused(measured);
    if (HasFatalFailure()) return;
    ASSERT_TRUE(scan_or_rebuild());
    expect_exact();
    if (HasFailure()) return;
  }
  if (support::is_sanitized) return;  // too few rounds for that
  EXPECT_GT(refused, 5);
  EXPECT_GT(right, 5);
  EXPECT_GT(rebuilt, 5);
}

TEST_F(DamagedDatabaseTest, DamagedWal_TotalsAreCorrectOrRefused) {
  SCOPED_TRACE(random.trace());
  make_tree(300);
  scan();
  make_file("top1/late", 100);
  mark("top1/late");
  const fs::path kept = temp / "kept";
  scan();
  fs::create_directory(kept);
  for (const char* const name : {"scan.db", "scan.db-wal", "scan.db.commit"}) {
    fs::copy_file(temp / name, kept / name);
  }
  ASSERT_GT(fs::file_size(kept / "scan.db-wal"), 4096U);
  const auto measured = measure({drive()});
  const auto put_back = [&] {
    close();
    for (const char* const name : {"scan.db", "scan.db-wal", "scan.db.commit"}) {
      fs::copy_file(kept / name, temp / name, fs::copy_options::overwrite_existing);
    }
    fs::remove(temp / "scan.db-shm");
    fs::remove(temp / "scan.db.damaged");
  };
  put_back();
  ASSERT_EQ(shown(), measured) << "the log is read";
  for (int round = 0; round < rounds; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    put_back();
    damage(log());
    expect_right_or_refused(measured);
    if (round % 10 != 0) continue;
    ASSERT_TRUE(scan_or_rebuild());
    expect_exact();
    if (HasFailure()) return;
  }
  if (support::is_sanitized) return;  // too few rounds for that
  EXPECT_GT(refused, 5);
}

TEST_F(DamagedDatabaseTest, DamageFoundByReader_NextScanRebuilds) {
  make_tree(800);
  scan();
  close_with_empty_log();
  const std::uint64_t pages = fs::file_size(file()) / 4096;
  for (std::uint64_t page = 1; page < pages; ++page) overwrite(file(), page * 4096 + 2000, "damage");
  auto opened = UsageDatabase::open_read_only(file());
  const auto found = opened ? query_usage(*opened, "", {.depth = 5}).error() : opened.error();
  EXPECT_EQ(found.code, Errc::database_damaged);
  EXPECT_THAT(found.message, HasSubstr("scan.db is damaged"));
  EXPECT_THAT(found.message, HasSubstr("the next 'spoor scan' rebuilds it"));
  EXPECT_TRUE(fs::exists(temp / "scan.db.damaged"));
  opened = base::Error();

  const auto report = scan_or_rebuild();
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->record.walked_everything);
  EXPECT_THAT(report->record.reason, HasSubstr("scan.db is damaged"));
  EXPECT_THAT(report->record.reason, HasSubstr("was set aside as " + (temp / "scan.db.corrupt").native()));
  EXPECT_THAT(report->record.reason, Not(HasSubstr("next")));
  EXPECT_TRUE(fs::exists(temp / "scan.db.corrupt"));
  EXPECT_FALSE(fs::exists(temp / "scan.db.damaged"));
  expect_exact();
  EXPECT_THAT(scan().record.reason, "") << "once is enough";
}

TEST_F(DamagedDatabaseTest, OlderCopyRestored_IsDetectedAsDamage) {
  make_tree(20);
  // Restored beside no log, or the log of a newer file, which has all commits since; there also with the
  // mark.
  for (const auto& [has_log, with_mark] :
       {std::pair(false, false), std::pair(true, false), std::pair(true, true)}) {
    SCOPED_TRACE(std::to_string(has_log) + std::to_string(with_mark));
    scan();
    close_with_empty_log();
    fs::copy_file(file(), temp / "copy");
    fs::copy_file(temp / "scan.db.commit", temp / "mark", fs::copy_options::overwrite_existing);
    reopen_database();
    scan();  // needs no more pages: the size of the file stays
    close_with_empty_log();
    reopen_database();
    if (has_log) scan();
    close();
    EXPECT_EQ(fs::file_size(log()) > 0, has_log);
    EXPECT_TRUE(UsageDatabase::open_read_only(file()));
    fs::rename(temp / "copy", file());
    if (with_mark) fs::rename(temp / "mark", temp / "scan.db.commit");
    EXPECT_EQ(UsageDatabase::open_read_only(file()).error().code, Errc::database_damaged);
    const auto report = scan_or_rebuild();
    ASSERT_TRUE(report);
    EXPECT_THAT(report->record.reason,
                HasSubstr(has_log ? "its log is that of a newer one" : "its last commit is missing"));
    expect_exact();
  }
}

// It is not synced: a power cut may leave any part of it.
TEST_F(DamagedDatabaseTest, DamagedCommitMark_CountsAsNone) {
  ASSERT_TRUE(keep_commit_mark(file(), {"id", 12}));
  const fs::path mark_file = temp / "scan.db.commit";
  const auto mark = read_commit_mark(file()).value();
  ASSERT_TRUE(mark);
  EXPECT_EQ(mark->database, "id");
  EXPECT_EQ(mark->number, 12U);
  for (std::uint64_t left = fs::file_size(mark_file); left-- > 0;) {
    fs::resize_file(mark_file, left);
    EXPECT_FALSE(read_commit_mark(file()).value()) << left;
  }
  ASSERT_TRUE(keep_commit_mark(file(), {"id", 12}));
  for (std::uint64_t at = 0; at < fs::file_size(mark_file); ++at) {
    ASSERT_TRUE(keep_commit_mark(file(), {"id", 12}));
    overwrite(mark_file, at, std::string(1, '\0'));
    EXPECT_FALSE(read_commit_mark(file()).value()) << at;
  }
}

TEST_F(DamagedDatabaseTest, CommitMark_IsWrittenAtEachCommit) {
  for (std::uint64_t commits = 1; commits <= 3; ++commits) {
    scan();
    EXPECT_EQ(read_commit_mark(file()).value()->number, commits);
  }
  EXPECT_GT(fs::file_size(log()), 0U);
}

TEST_F(DamagedDatabaseTest, LogOf1MiB_IsEmptiedByTheCommit) {
  make_tree(800);
  merges = false;
  std::uint64_t largest = 0;
  for (std::uint64_t size = 1; size > 0; largest = std::max(largest, size)) {
    change_something(0);
    scan();
    reopen_database();  // the end of the connection leaves the log
    size = fs::file_size(log());
    ASSERT_LT(size, 1U << 20U);
  }
  EXPECT_GT(largest, 800U << 10U);
}

TEST_F(DamagedDatabaseTest, LogThatEndsBeforeTheLastCommit_IsDetectedAsDamage) {
  make_tree(20);
  scan();
  close_with_empty_log();
  reopen_database();
  std::vector<std::uint64_t> sizes = {0};
  for (int count = 0; count < 3; ++count) {
    make_file("top1/late" + std::to_string(count));
    mark("top1", tracker::MarkKind::tree);
    scan();
    sizes.push_back(fs::file_size(log()));
  }
  close();
  EXPECT_TRUE(UsageDatabase::open_read_only(file()));
  sizes.pop_back();
  for (; !sizes.empty(); sizes.pop_back()) {
    fs::resize_file(log(), sizes.back());
    fs::remove(temp / "scan.db-shm");
    EXPECT_EQ(UsageDatabase::open_read_only(file()).error().code, Errc::database_damaged) << sizes.back();
  }
}

// A mark that cannot be read may be one that tells of a missing commit; a note, one that tells of damage.
TEST_F(DamagedDatabaseTest, FileBesideItThatCannotBeRead_IsAnError) {
  scan();
  close();
  for (const char* const suffix : {".commit", ".damaged"}) {
    const fs::path beside = file().native() + suffix;
    fs::remove(beside);
    fs::create_directory(beside);
    const auto opened = UsageDatabase::open(file());
    ASSERT_FALSE(opened) << suffix;
    EXPECT_THAT(opened.error().message, HasSubstr(beside.native()));
    EXPECT_NE(opened.error().code, Errc::database_damaged) << suffix;
    fs::remove(beside);
  }
  EXPECT_TRUE(UsageDatabase::open(file()));
}

TEST_F(DamagedDatabaseTest, SecondDamagedDatabase_ReplacesFirstSetAsideCopy) {
  scan();
  for (const char* const content : {"first", "second"}) {
    close_with_empty_log();
    std::ofstream(file()) << content;
    ASSERT_TRUE(scan_or_rebuild());
    std::string kept;
    std::ifstream(temp / "scan.db.corrupt") >> kept;
    EXPECT_EQ(kept, content);
  }
}

// Each is whole, and not what belongs there.
TEST_F(DamagedDatabaseTest, SwappedPages_AreDetectedAsDamage) {
  make_tree(400);
  scan();
  const auto measured = measure({drive()});
  close_with_empty_log();
  const std::uint64_t last = fs::file_size(file()) - 4096;
  std::string pages[2];
  for (const int which : {0, 1}) {
    std::ifstream stream(file(), std::ios::binary);
    stream.seekg(static_cast<std::streamoff>(last) - 4096 * which);
    pages[which].resize(4096);
    stream.read(pages[which].data(), 4096);
  }
  ASSERT_NE(pages[0], pages[1]);
  overwrite(file(), last, pages[1]);
  overwrite(file(), last - 4096, pages[0]);
  expect_right_or_refused(measured);
  EXPECT_EQ(refused, 1);
  const auto report = scan_or_rebuild();
  ASSERT_TRUE(report);
  EXPECT_THAT(report->record.reason, HasSubstr("damaged"));
}

// Nor is a full disk, which SQLite tells apart in the same way.
TEST_F(DamagedDatabaseTest, ConcurrentWriter_IsNotReportedAsDamage) {
  scan();
  auto other = UsageDatabase::open(file());
  const auto held = other->begin_scan();
  database->handle().set_busy_timeout(0);
  const auto refused_scan = try_scan();
  ASSERT_FALSE(refused_scan);
  EXPECT_EQ(refused_scan.error().code, Errc::database_failed);
  EXPECT_FALSE(fs::exists(temp / "scan.db.damaged"));
}

// Truncated within a page, on the border of one, and to nothing.
TEST_F(DamagedDatabaseTest, TruncatedFile_IsDetectedAndRebuilt) {
  make_tree(400);
  scan();
  const auto measured = measure({drive()});
  const std::uint64_t size = fs::file_size(file());
  for (const std::uint64_t left :
       {size - 1, size - 4095, size - 4096, size / 2, std::uint64_t{100}, std::uint64_t{0}}) {
    SCOPED_TRACE(left);
    close_with_empty_log();
    fs::resize_file(file(), left);
    expect_right_or_refused(measured);
    const auto report = scan_or_rebuild();
    ASSERT_TRUE(report);
    EXPECT_THAT(report->record.reason, HasSubstr("is damaged"));
    if (left == 0) {
      EXPECT_THAT(report->record.reason, HasSubstr("its history could not be read"));
    }
    expect_exact();
  }
  EXPECT_EQ(right, 0);
}

// The rest of a long value, which SQLite takes as it is.
TEST_F(DamagedDatabaseTest, PageCutOff_IsNotReadAsZeros) {
  const fs::path path = temp / "database";
  SqliteDatabase database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, checksum_vfs());
  reserve_checksums(database);
  database.exec("CREATE TABLE pages(value BLOB)");
  SqliteStatement(database, "INSERT INTO pages VALUES(?1)", std::string(10'000, 'x')).run();
  fs::resize_file(path, fs::file_size(path) - 4000);
  SqliteDatabase cut(path, SQLITE_OPEN_READONLY, checksum_vfs());
  const auto read = guarded("read", cut, [&] { return cut.text("SELECT CAST(value AS TEXT) FROM pages"); });
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Errc::database_damaged);
}

// Pages that are freed, some in the scan that took them, and come back later.
TEST_F(DamagedDatabaseTest, RandomTransactions_AreNotReportedAsDamage) {
  SCOPED_TRACE(random.trace());
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    if (random.one_in(3)) reopen_database();
    // Pages leave the memory before the commit, which then needs its sync (log_file.h).
    database->handle().exec("PRAGMA cache_size = 4; PRAGMA synchronous = FULL");
    const auto transaction = database->begin_scan().value();
    DirectoryStore& directories = transaction->directories();
    for (std::uint64_t steps = random.between(1, 12); steps > 0; --steps) {
      const auto parent = static_cast<std::int64_t>(random.between(10'000'001, 10'000'006));
      DirectoryRow row;
      row.id = parent;
      row.directories = 1;
      if (random.one_in(2)) {
        directories.erase(row, {});
        continue;
      }
      row.directories = 0;
      NameChanges names;
      for (std::uint64_t count = random.between(1, 4000); count > 0; --count) {
        row.id = directories.new_id();
        directories.put(row);
        names[random.letters(20)] = named(row);
      }
      directories.put_names(parent, names);
    }
    transaction->commit({});
    ASSERT_EQ(database->handle().text("PRAGMA integrity_check"), "ok");
  }
}

}  // namespace
}  // namespace spoor::scanner
