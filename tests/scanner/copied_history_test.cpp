// A database that is built anew continues the history of the one that it replaces, as far as that can be
// read.

#include <gmock/gmock.h>

#include <fstream>
#include <map>

#include "scanner/database/sqlite.h"
#include "tests/scanner/history_node.h"

namespace spoor::scanner {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;
using Event = HistoryEvent;
namespace fs = std::filesystem;

class CopiedHistoryTest : public HistoryNode {
 protected:
  using HistoryNode::HistoryNode;

  void rebuild() {
    begin_rebuild("it was damaged");
    scan_after(hours(1));
    finish_rebuild();
  }

  // The encoded points of each directory with a history.
  static std::map<std::string, std::string> histories(SqliteDatabase& opened) {
    SqliteStatement rows(opened,
                         "WITH RECURSIVE tree(id, path) AS (SELECT id, '' FROM history WHERE parent = 0 "
                         "UNION ALL SELECT history.id, tree.path || '/' || history.name FROM history "
                         "JOIN tree ON history.parent = tree.id) "
                         "SELECT path, points FROM tree JOIN history USING(id)");
    std::map<std::string, std::string> found;
    while (rows.step()) found.emplace(rows.blob(0), rows.blob(1));
    return found;
  }

  void damage_page(std::uint64_t page) const {
    std::fstream stream(file(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(static_cast<std::streamoff>(page * 4096 + 100));
    stream << "damaged";
  }
};

class CopiedHistoryOfTwoDrivesTest : public CopiedHistoryTest {
 protected:
  CopiedHistoryOfTwoDrivesTest() : CopiedHistoryTest({"one", "two"}) {}
};

TEST_F(CopiedHistoryTest, Rebuild_ContinuesTheHistory) {
  make_file("kept/file", 100);
  make_file("gone/file", 30);
  make_file("early/file", 3);
  const std::int64_t first = scan_after(hours(1));
  make_file("kept/second", 50);
  mark("kept");
  remove("early");
  mark("early");
  const std::int64_t second = scan_after(hours(1));
  const HistoryPoints before = points("kept");
  remove("gone");
  make_file("kept/third", 7);
  make_file("unknown/file", 5);
  rebuild();
  EXPECT_THAT(last.record.reason, EndsWith(" with its history"));
  HistoryPoints after = points("kept");
  ASSERT_EQ(after.size(), 3U);
  EXPECT_EQ(after.back().figures.bytes, 157U);
  after.pop_back();
  EXPECT_EQ(after, before);
  EXPECT_EQ(points("gone").back().event, Event::deleted);
  ASSERT_EQ(points("unknown").size(), 1U);
  EXPECT_EQ(points("unknown").back().event, Event::none) << "it may be older than the damage";
  EXPECT_EQ(usage_since("", first).history_since, wall_time(first));
  EXPECT_EQ(usage_since("", first).total.growth->bytes, 157 + 5 - 133);
  EXPECT_EQ(last.history.paths, 5U);
  EXPECT_EQ(last.history.points, 3U + 3U + 2U + 2U + 1U);
  EXPECT_EQ(count("SELECT min(gone_at) FROM history"), second) << "it makes room first";
  make_file("new/file", 1);
  mark("new");
  scan_after(hours(1));
  EXPECT_EQ(points("new").back().event, Event::created);
  remove("kept");
  make_file("kept/other", 1);
  mark("kept");
  scan_after(hours(1));
  EXPECT_EQ(points("kept").back().event, Event::recreated) << "its identity is known again";
}

TEST_F(CopiedHistoryTest, ClockFarBehindAtTheRebuild_KeepsThePoints) {
  make_file("a/file", 1);
  for (std::size_t size = 2; size < 6; ++size) {
    make_file("a/file", size);
    mark("a");
    scan_after(hours(24));
  }
  const HistoryPoints before = points("a");
  const auto right = clock.wall_now();
  clock.set_wall(base::WallTime());
  rebuild();
  EXPECT_TRUE(last.history.clock_is_behind);
  EXPECT_EQ(points("a"), before);
  clock.set_wall(right);
  make_file("a/file", 100);
  mark("a");
  scan_after(hours(1));
  EXPECT_FALSE(last.history.clock_is_behind);
  EXPECT_EQ(points("a").size(), before.size() + 1);
}

// The disk of a damaged database may be not the only one that fails.
TEST_F(CopiedHistoryOfTwoDrivesTest, DriveMissingAtTheRebuild_DeletesNothing) {
  make_file("near/file", 1);
  make_file("gone/file", 1);
  write_file(on_drive("far/file", 1), 1'000);
  scan_after(hours(1));
  fs::rename(drive(1), temp / "aside");
  remove("gone");
  rebuild();
  EXPECT_EQ(points("far").size(), 1U);
  scan_after(hours(1));
  EXPECT_EQ(points("far").size(), 1U) << "it is missing still";
  fs::rename(temp / "aside", drive(1));
  scan_after(hours(1));
  EXPECT_EQ(points("far").size(), 1U);
  EXPECT_EQ(points("far").back().event, Event::none);
  EXPECT_EQ(points("gone").back().event, Event::deleted) << "now that is known";
  make_file("later/file", 1);
  mark("later");
  scan_after(hours(1));
  EXPECT_EQ(points("later").back().event, Event::created);
}

TEST_F(CopiedHistoryTest, OlderCopyOfTheDatabase_IsNotTakenForAll) {
  make_file("a/file", 1);
  scan_after(hours(1));
  database->empty_log();
  fs::copy_file(file(), temp / "older");
  make_file("a/file", 22);
  mark("a");
  scan_after(hours(1));
  database->empty_log();
  database.reset();
  fs::rename(temp / "older", file());
  ASSERT_FALSE(UsageDatabase::open(file()));
  rebuild();
  EXPECT_THAT(last.record.reason, EndsWith("with what could be read of its history"));
}

TEST_F(CopiedHistoryTest, SwitchedOff_LeavesNothing) {
  make_file("kept/file", 100);
  scan_after(hours(1));
  options.history.keep = false;
  rebuild();
  EXPECT_THAT(points("kept"), IsEmpty());
  EXPECT_EQ(count("SELECT count(*) FROM settings WHERE key LIKE 'history%'"), 0);
}

TEST_F(CopiedHistoryTest, WithoutHistory_NothingIsSaidOfIt) {
  options.history.keep = false;
  make_file("kept/file", 100);
  scan_after(hours(1));
  rebuild();
  EXPECT_THAT(last.record.reason, EndsWith("is rebuilt"));
  database.reset();
  fs::remove(file());
  rebuild();
  EXPECT_THAT(last.record.reason, EndsWith("is rebuilt")) << "nor of that of a missing database";
}

TEST_F(CopiedHistoryTest, KilledBeforeTheCopyIsWhole_BeginsAnew) {
  make_file("kept/file", 100);
  scan_after(hours(1));
  database.reset();
  const fs::path unfinished = file().native() + ".new";
  ASSERT_TRUE(UsageDatabase::open(unfinished));
  EXPECT_FALSE(UsageDatabase::resume_rebuild(file()).value());
  EXPECT_FALSE(fs::exists(unfinished));
  rebuild();
  EXPECT_EQ(points("kept").size(), 1U);
}

// Each page in turn: what is copied is right, and only what the page held, or what is below it, is lost.
TEST_F(CopiedHistoryTest, DamagedPage_LosesNoMoreThanItHolds) {
  constexpr int directories = 600;
  const auto path_of = [](int number) {
    return "group-" + std::to_string(number % 20) + "/directory-" + std::to_string(number);
  };
  for (int number = 0; number < directories; ++number) make_file(path_of(number) + "/file", 1);
  scan_after(hours(1));
  for (int round = 0; round < 3; ++round) {
    make_file(path_of(100 * round) + "/file", 2);
    mark(path_of(100 * round));
    scan_after(hours(1));
  }
  const auto all = histories(database->handle());
  ASSERT_EQ(all.size(), directories + 20U + 1U);
  database->empty_log();
  database.reset();
  const std::uint64_t pages = fs::file_size(file()) / 4096;
  const fs::path sound = temp / "sound";
  fs::copy_file(file(), sound);
  auto to = UsageDatabase::open(temp / "copy").value();
  std::uint64_t without_loss = 0;
  std::uint64_t lost_at_once = 0;
  for (std::uint64_t page = 0; page < pages; ++page) {
    SCOPED_TRACE(page);
    fs::copy_file(sound, file(), fs::copy_options::overwrite_existing);
    damage_page(page);
    const SqliteTransaction rolled_back(to.handle(), SqliteTransaction::Kind::reading);
    const CopiedHistory copied = copy_history(file(), to.handle());
    const auto found = copied.is_any ? histories(to.handle()) : std::map<std::string, std::string>();
    for (const auto& [path, points] : found) {
      if (!path.empty()) {
        ASSERT_EQ(points, all.at(path)) << path;
      }
    }
    if (copied.is_any) {
      EXPECT_EQ(to.handle().number("SELECT count(*) FROM history"), found.size())
          << "no path leads to the others";
    }
    const bool is_root_whole = copied.is_any && found.at("") == all.at("");
    const bool is_all = found.size() == all.size() && is_root_whole;
    EXPECT_EQ(copied.is_whole, is_all);
    if (is_all) {
      ++without_loss;
    } else if (copied.is_any) {
      lost_at_once = std::max(lost_at_once, all.size() - found.size());
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(without_loss, pages / 2) << "indexes and other tables";
  EXPECT_GT(lost_at_once, 0U);
  EXPECT_LT(lost_at_once, 200U);
}

}  // namespace
}  // namespace spoor::scanner
