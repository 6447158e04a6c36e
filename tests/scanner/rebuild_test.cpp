// A scan database that is built anew: the one that it replaces is in use until the new one is whole, and a
// kill at any moment leaves one that can be used.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <iterator>
#include <optional>
#include <utility>

#include "scanner/database/database_files.h"
#include "scanner/errors.h"
#include "scanner/feed/change_feed.h"
#include "scanner/feed/consumers.h"
#include "tests/scanner/scanned_node.h"

namespace spoor::scanner {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class RebuildTest : public ScannedNode {
 protected:
  RebuildTest() {
    make_file("a/b/file", 100);
    make_file("a/c/file", 200);
    scan();
    first_feed = feed_id(*database).value();
  }

  fs::path beside(const char* suffix) const { return file().native() + suffix; }
  void close() { database.reset(); }

  void begin() { begin_rebuild("it was asked for"); }

  // What `spoor usage` shows of the files below "a"; nothing where it fails.
  std::optional<std::uint64_t> shown() const {
    auto opened = UsageDatabase::open_read_only(file());
    if (!opened) return std::nullopt;
    const auto found = query_usage(*opened, "a", {});
    return found && *found ? std::optional((*found)->total.files) : std::nullopt;
  }

  std::string feed_at(const fs::path& path) const {
    auto opened = UsageDatabase::open_read_only(path);
    return opened ? feed_id(*opened).value() : opened.error().message;
  }

  std::string first_feed;
};

TEST_F(RebuildTest, RebuildNotFinished_OldDatabaseIsInUse) {
  make_file("a/d/file");
  begin();
  EXPECT_EQ(shown(), 2U);
  EXPECT_EQ(feed_at(file()), first_feed);
  EXPECT_FALSE(fs::exists(beside(".corrupt")));
  const ScanReport report = scan();
  EXPECT_THAT(report.record.reason, HasSubstr("it was asked for; it was set aside as"));
  EXPECT_EQ(shown(), 2U) << "until it is put in place";
  finish_rebuild();
  EXPECT_EQ(shown(), 3U);
  EXPECT_EQ(read_commit_mark(file()).value()->database, feed_at(file())) << "the mark is that of the new one";
  EXPECT_EQ(feed_at(beside(".corrupt")), first_feed);
  EXPECT_NE(feed_at(file()), first_feed);
  EXPECT_FALSE(fs::exists(beside(".new")));
  EXPECT_FALSE(fs::exists(beside(".new-wal")));
  expect_exact();
  make_file("a/e/file");
  mark("a/e/file");
  EXPECT_EQ(scan().record.reason, "") << "it goes on from the cursors of the rebuild";
  expect_exact();
}

TEST_F(RebuildTest, DroppedRebuild_KeepsOldDatabase) {
  for (int attempt = 0; attempt < 2; ++attempt) {
    begin();
    close();
    ASSERT_TRUE(UsageDatabase::drop_rebuild(file()));
    EXPECT_EQ(feed_at(file()), first_feed);
    EXPECT_FALSE(fs::exists(beside(".corrupt")));
    EXPECT_FALSE(fs::exists(beside(".new")));
    EXPECT_FALSE(UsageDatabase::resume_rebuild(file()).value());
  }
}

TEST_F(RebuildTest, DatabaseMissing_SetAsideCopyIsKept) {
  close();
  fs::rename(file(), beside(".corrupt"));
  begin();
  scan();
  finish_rebuild();
  EXPECT_EQ(feed_at(beside(".corrupt")), first_feed);
}

TEST_F(RebuildTest, LeftoverFilesWithoutNewDatabase_AreRemoved) {
  const char* const names[] = {".new-wal", ".new-shm", ".new.commit", ".new.commit.tmp"};
  for (const char* const name : names) std::ofstream(beside(name)) << "x";
  EXPECT_FALSE(UsageDatabase::resume_rebuild(file()).value());
  for (const char* const name : names) EXPECT_FALSE(fs::exists(beside(name))) << name;
}

TEST_F(RebuildTest, RebuildScanKilled_IsResumed) {
  resumes = true;
  begin();
  ASSERT_FALSE(scan_killed_after(2));
  close();
  EXPECT_EQ(shown(), 2U);
  auto begun = UsageDatabase::resume_rebuild(file()).value();
  ASSERT_TRUE(begun);
  database = std::make_unique<UsageDatabase>(std::move(*begun));
  const ScanReport report = scan();
  EXPECT_TRUE(has_resumed);
  EXPECT_TRUE(report.record.walked_everything);
  finish_rebuild();
  expect_exact();
}

// What a kill leaves after each step of putting it in place.
TEST_F(RebuildTest, KilledWhilePutInPlace_LeavesUsableDatabase) {
  make_file("a/d/file");
  database->empty_log();
  begin();
  scan();
  database->empty_log();
  close();
  const fs::path kept = temp / "kept";
  fs::create_directory(kept);
  for (const auto& entry : fs::directory_iterator(temp.path())) {
    if (entry.path().filename().native().starts_with("scan.db")) {
      fs::copy_file(entry.path(), kept / entry.path().filename());
    }
  }
  const std::function<void()> steps[] = {
      [] {},
      [&] { fs::create_hard_link(file(), beside(".corrupt")); },
      [&] { fs::remove(beside("-wal")); },
      [&] { fs::remove(beside("-shm")); },
      [&] { fs::rename(beside(".new"), file()); },
      [&] { fs::rename(beside(".new.commit"), beside(".commit")); },
  };
  for (std::size_t done = 1; done <= std::size(steps); ++done) {
    SCOPED_TRACE(done);
    close();
    for (const char* const suffix :
         {"", ".corrupt", "-wal", "-shm", ".commit", ".new", ".new-wal", ".new-shm", ".new.commit"}) {
      fs::remove(beside(suffix));
    }
    for (const auto& entry : fs::directory_iterator(kept)) {
      fs::copy_file(entry.path(), temp.path() / entry.path().filename());
    }
    for (std::size_t step = 0; step < done; ++step) steps[step]();
    EXPECT_EQ(shown(), done <= 4 ? 2U : 3U);
    EXPECT_FALSE(UsageDatabase::resume_rebuild(file()).value());
    EXPECT_EQ(shown(), 3U);
    EXPECT_FALSE(fs::exists(beside(".new")));
    EXPECT_EQ(feed_at(beside(".corrupt")), first_feed);
    reopen_database();
    scan();
    expect_exact();
  }
}

TEST_F(RebuildTest, DamagedUnfinishedRebuild_IsDropped) {
  begin();
  close();
  std::ofstream(beside(".new")) << "no database";
  EXPECT_FALSE(UsageDatabase::resume_rebuild(file()).value());
  EXPECT_FALSE(fs::exists(beside(".new")));
  EXPECT_EQ(shown(), 2U);
}

// Its log holds the last commit, as after a scan while somebody read.
TEST_F(RebuildTest, OldDatabaseWithWal_IsSetAsideWhole) {
  make_file("a/d/file");
  mark("a/d/file");
  {
    UsageDatabase slow = UsageDatabase::open_read_only(file()).value();
    slow.handle().exec("BEGIN; SELECT count(*) FROM scans");
    scan();
  }
  begin();
  scan();
  finish_rebuild();
  EXPECT_FALSE(fs::exists(beside(".corrupt-wal"))) << "a kill before would leave the file without it";
  fs::remove(beside(".corrupt.damaged"));
  auto kept = UsageDatabase::open_read_only(beside(".corrupt"));
  ASSERT_TRUE(kept);
  EXPECT_EQ(latest_scan(*kept).value(), 2U);
  EXPECT_EQ(query_usage(*kept, "a", {}).value()->total.files, 3U);
}

// A log that could not be written back, as that of a damaged file.
TEST_F(RebuildTest, LogOfReplacedDatabase_GoesWithIt) {
  close();
  for (const char* const log : {"-wal", "-journal"}) {
    std::ofstream(beside(".new")) << "new";
    std::ofstream(beside(log)) << "old";
    ASSERT_TRUE(put_rebuilt_in_place(file()));
    EXPECT_FALSE(fs::exists(beside(log))) << "SQLite would apply it to the new one";
    EXPECT_TRUE(fs::exists(aside_of(file()).native() + log));
  }
}

TEST_F(RebuildTest, Consumers_StartOverOnceRebuildIsInPlace) {
  auto consumers = Consumers::open(temp.path()).value();
  ASSERT_TRUE(consumers.commit({"offsite", first_feed, 1, {}}));
  begin();
  EXPECT_EQ(consumers.position("offsite", feed_at(file())).value(), 1U);
  scan();
  finish_rebuild();
  EXPECT_FALSE(consumers.position("offsite", feed_at(file())).value());
}

}  // namespace
}  // namespace spoor::scanner
