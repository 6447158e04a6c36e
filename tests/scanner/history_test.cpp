#include <gmock/gmock.h>

#include <cerrno>

#include "tests/scanner/history_node.h"

namespace spoor::scanner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Change = UsageGrowth::Change;
using Event = HistoryEvent;
using std::chrono::hours;
using std::chrono::seconds;

class HistoryTest : public HistoryNode {
 protected:
  using HistoryNode::HistoryNode;

  std::vector<Event> events(const std::string& path) {
    std::vector<Event> found;
    for (const HistoryPoint& point : points(path)) found.push_back(point.event);
    return found;
  }
  std::vector<std::uint64_t> bytes(const std::string& path) {
    std::vector<std::uint64_t> found;
    for (const HistoryPoint& point : points(path)) found.push_back(point.figures.bytes);
    return found;
  }
  UsageGrowth growth(const std::string& path, std::int64_t since) {
    const auto found = usage_since(path, since, 0).total.growth;
    EXPECT_TRUE(found) << path;
    return found.value_or(UsageGrowth());
  }
  void remove_marked(const std::string& path) {
    remove(path);
    mark(path);
  }
  void make_marked(const std::string& path, std::size_t size) {
    make_file(path, size);
    mark(path);
  }
};

TEST_F(HistoryTest, IdleScan_RecordsNothing) {
  make_file("a/b/file");
  scan_after(hours(1));
  const auto before = sqlite3_total_changes(database->handle().handle());
  mark("a/b");
  scan_after(hours(1));
  EXPECT_THAT(bytes("a/b"), ElementsAre(10));
  EXPECT_LT(sqlite3_total_changes(database->handle().handle()) - before, 20);
}

TEST_F(HistoryTest, Prefix_HasAHistoryAtAnyDepth) {
  options.history.depth = 1;
  options.history.prefixes = {"a/b/c/d"};
  make_file("a/b/c/d/e/file", 5);
  scan_after(hours(1));
  make_marked("a/b/c/d/e/more", 6);
  scan_after(hours(1));
  EXPECT_THAT(bytes("a/b/c/d"), ElementsAre(5, 11));
  EXPECT_THAT(bytes("a/b/c"), IsEmpty());
  EXPECT_THAT(bytes("a/b/c/d/e"), IsEmpty());
  remove_marked("a/b");
  scan_after(hours(1));
  EXPECT_THAT(events("a/b/c/d"), ElementsAre(Event::none, Event::none, Event::deleted));
}

TEST_F(HistoryTest, RenamedDirectory_TakesItsHistoryAlong) {
  make_file("a/x/file", 100);
  make_file("a/gone/file", 3);
  const std::int64_t before = scan_after(hours(1));
  rename("a", "b");
  remove("b/gone");
  make_file("b/x/more", 1);
  mark("a");
  mark("b");
  scan_after(hours(1));
  EXPECT_THAT(events("a"), IsEmpty());
  EXPECT_THAT(events("b"), ElementsAre(Event::none, Event::renamed));
  EXPECT_THAT(bytes("b/x"), ElementsAre(100, 101));
  EXPECT_THAT(events("b/gone"), ElementsAre(Event::none, Event::deleted));
  EXPECT_EQ(growth("b", before).change, Change::renamed);
  EXPECT_EQ(growth("b", before).from, "a");
  EXPECT_EQ(growth("b", before).bytes, -2);
  EXPECT_EQ(growth("b/x", before).from, "a/x");
  const Usage usage = usage_since("", before);
  EXPECT_EQ(usage.total.children.size(), 1U) << "'a' is not deleted";
}

TEST_F(HistoryTest, RenamedOutOfADirectoryThatMovesTooDeep_TakesItsHistoryAlong) {
  make_file("x/y/file", 10'000);
  make_file("p/file", 1);
  const std::int64_t first = scan_after(hours(1));
  rename("x/y", "z");
  rename("x", "p/x");
  for (const char* path : {"x/y", "z", "x", "p/x"}) mark(path);
  scan_after(hours(1));
  EXPECT_THAT(events("z"), ElementsAre(Event::none, Event::renamed));
  EXPECT_EQ(growth("z", first).bytes, 0);
  EXPECT_EQ(growth("z", first).change, Change::renamed);
}

TEST_F(HistoryTest, WithoutProofOfIdentity_ARenameIsADeletionAndACreation) {
  reader.without_birth = true;
  make_file("a/file", 100);
  scan_after(hours(1));
  rename("a", "b");
  mark("a");
  mark("b");
  scan_after(hours(1));
  EXPECT_THAT(events("a"), ElementsAre(Event::none, Event::deleted));
  EXPECT_THAT(events("b"), ElementsAre(Event::created));
}

TEST_F(HistoryTest, SwitchedOff_RemovesWhatIsKept) {
  make_file("a/file", 100);
  scan_after(hours(1));
  options.history.keep = false;
  scan_after(hours(1));
  EXPECT_FALSE(last.history.is_kept);
  EXPECT_THAT(points("a"), IsEmpty());
  EXPECT_EQ(count("SELECT count(*) FROM sqlite_master WHERE name LIKE 'history%'"), 0);
  EXPECT_EQ(count("SELECT count(*) FROM settings WHERE key LIKE 'history%'"), 0);
  EXPECT_FALSE(usage_since("", 0).total.growth);
  make_marked("b/file", 1);
  options.history.keep = true;
  scan_after(hours(1));
  EXPECT_THAT(events("b"), ElementsAre(Event::none)) << "the history begins anew";
  EXPECT_EQ(last.history.points, 3U);
}

TEST_F(HistoryTest, ChangedSettings_AddAndDropDirectories) {
  make_file("a/b/c/file", 100);
  scan_after(hours(1));
  options.history.depth = 3;
  const std::int64_t deeper = scan_after(hours(1));
  EXPECT_THAT(events("a/b/c"), ElementsAre(Event::none)) << "it is not new";
  EXPECT_EQ(points("a/b/c")[0].at, deeper);
  options.history.depth = 0;
  options.history.prefixes = {"a/b"};
  scan_after(hours(1));
  EXPECT_THAT(points("a/b/c"), IsEmpty());
  EXPECT_THAT(points("a"), IsEmpty());
  EXPECT_THAT(bytes("a/b"), ElementsAre(100)) << "it stays";
  EXPECT_EQ(last.history.paths, 3U) << "with 'a', which has no points";
  EXPECT_EQ(last.history.points, 2U);
}

TEST_F(HistoryTest, ScansWithoutHistoryInBetween_AreCaughtUp) {
  make_file("a/file", 100);
  make_file("b/file", 1);
  scan_after(hours(1));
  // As an older Spoor scans: it leaves the tables as they are.
  const auto touch = [this](const char* sql) { database->handle().exec(sql); };
  touch("ALTER TABLE history RENAME TO aside");
  touch("CREATE TABLE kept AS SELECT * FROM settings WHERE key LIKE 'history%'");
  options.history.keep = false;
  make_marked("a/more", 11);
  remove_marked("b");
  make_marked("c/file", 2);
  scan_after(hours(1));
  touch("ALTER TABLE aside RENAME TO history");
  touch("REPLACE INTO settings SELECT * FROM kept");
  options.history.keep = true;
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(100, 111));
  EXPECT_THAT(events("b"), ElementsAre(Event::none, Event::deleted));
  EXPECT_THAT(events("c"), ElementsAre(Event::created));
}

TEST_F(HistoryTest, ScanWithAClockFarBehind_RecordsNothing) {
  make_file("a/file", 1);
  for (std::size_t size = 2; size < 12; ++size) {
    make_marked("a/file", size);
    scan_after(hours(24));
  }
  const HistoryPoints before = points("a");
  const auto right = clock.wall_now();
  clock.set_wall(base::WallTime());
  make_marked("a/file", 100);
  make_marked("new/file", 1);
  options.limits = {{.path = "a", .growth_per_day = 1}};
  scan_after(hours(1));
  EXPECT_TRUE(last.history.clock_is_behind);
  EXPECT_FALSE(last.limits[0].growth_per_day) << "of that time nothing is known";
  EXPECT_EQ(points("a"), before);
  clock.set_wall(right);
  const std::int64_t again = scan_after(hours(24));
  EXPECT_FALSE(last.history.clock_is_behind);
  EXPECT_EQ(points("a").size(), before.size() + 1);
  EXPECT_EQ(points("a").back().at, again);
  EXPECT_EQ(points("a").back().figures.bytes, 100U);
  EXPECT_THAT(events("new"), ElementsAre(Event::created)) << "none is missed";
}

TEST_F(HistoryTest, ScansWithAClockFarAhead_AreMerged) {
  make_file("a/file", 1);
  for (std::size_t size = 2; size < 12; ++size) {
    make_marked("a/file", size);
    scan_after(hours(7));
  }
  const HistoryPoints before = points("a");
  const auto right = clock.wall_now();
  for (std::size_t size = 20; size < 22; ++size) {
    make_marked("a/file", size);
    scan_after(hours(50 * 365 * 24));
  }
  clock.set_wall(right);
  scan_after(hours(1));
  EXPECT_TRUE(last.history.clock_is_behind) << "two scans are later than this one";
  make_marked("a/file", 30);
  const std::int64_t back = scan_after(hours(1));
  EXPECT_FALSE(last.history.clock_is_behind);
  auto after = points("a");
  ASSERT_EQ(after.size(), before.size() + 1);
  EXPECT_EQ(after.back().at, back);
  EXPECT_EQ(after.back().figures.bytes, 30U);
  after.pop_back();
  EXPECT_EQ(after, before);
}

TEST_F(HistoryTest, FailedScan_RecordsNothing) {
  make_file("a/file", 1);
  scan_after(hours(1));
  make_marked("a/more", 1);
  clock.advance(hours(1));
  EXPECT_TRUE(stop_at("a"));
  EXPECT_THAT(bytes("a"), ElementsAre(1));
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(1, 2));
}

TEST_F(HistoryTest, ResumedScan_RecordsWhatTheKilledOneRead) {
  resumes = true;
  make_file("a/file", 1);
  make_file("b/file", 1);
  scan_after(hours(1));
  make_marked("a/more", 1);
  make_marked("b/more", 1);
  clock.advance(hours(1));
  EXPECT_TRUE(stop_at("b"));
  scan_after(hours(1));
  EXPECT_TRUE(has_resumed);
  EXPECT_THAT(bytes("a"), ElementsAre(1, 2));
  EXPECT_THAT(bytes("b"), ElementsAre(1, 2));
}

TEST_F(HistoryTest, UnreadableDirectory_KeepsItsTotals) {
  make_file("a/file", 100);
  scan_after(hours(1));
  make_marked("a/more", 1);
  reader.list_errors["a"] = EIO;
  const std::int64_t unread = scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(100, 100));
  EXPECT_FALSE(points("a").back().complete);
  EXPECT_TRUE(points("a").back().unread);
  EXPECT_FALSE(points("").back().complete);
  EXPECT_FALSE(points("").back().unread) << "what is in it is known";
  reader.repair();
  const std::int64_t read = scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(100, 100, 101));
  EXPECT_TRUE(points("a").back().complete);
  EXPECT_FALSE(growth("", unread).complete);
  EXPECT_TRUE(growth("", unread - 1).complete) << "against the point before";
  EXPECT_TRUE(growth("", read).complete);
}

TEST_F(HistoryTest, SameTotalsReadAgain_AreComplete) {
  make_directory("a");
  reader.list_errors["a"] = EIO;
  scan_after(hours(1));
  EXPECT_FALSE(points("a").back().complete);
  reader.repair();
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(0, 0));
  EXPECT_TRUE(points("a").back().complete);
}

TEST_F(HistoryTest, FoundInADirectoryThatWasUnread_IsNotNew) {
  options.history.prefixes = {"p/q/r/s"};
  make_file("a/b/file", 1'000);
  make_file("p/q/r/s/file", 1'000);
  make_file("other/file", 1);
  reader.list_errors["a"] = EIO;
  reader.list_errors["p/q/r"] = EIO;
  const std::int64_t before = scan_after(hours(1));
  make_marked("new/file", 5);
  make_marked("other/new/file", 5);
  scan_after(hours(1));
  EXPECT_THAT(events("new"), ElementsAre(Event::created)) << "the root was read";
  EXPECT_THAT(events("other/new"), ElementsAre(Event::created));
  reader.repair();
  const std::int64_t found = scan_after(hours(1));
  EXPECT_THAT(events("a/b"), ElementsAre(Event::none));
  EXPECT_THAT(events("p/q/r/s"), ElementsAre(Event::none));
  EXPECT_EQ(growth("a/b", before).change, Change::grown);
  EXPECT_EQ(growth("a/b", before).bytes, 0);
  EXPECT_EQ(growth("a/b", before).since, wall_time(found));
  EXPECT_EQ(growth("a", before).bytes, 1'000);
  EXPECT_FALSE(growth("a", before).complete);
  make_marked("a/new/file", 5);
  scan_after(hours(1));
  EXPECT_THAT(events("a/new"), ElementsAre(Event::created)) << "it was read since";
}

TEST_F(HistoryTest, RefusedDirectory_IsNotNewLater) {
  options.history.paths_max = 2;
  make_file("a/f", 1);
  scan_after(hours(1));
  make_marked("b/f", 1'000);
  scan_after(hours(1));
  EXPECT_EQ(last.history.refused, 1U);
  options.history.paths_max = 10;
  make_marked("b/g", 1);
  make_marked("c/f", 1);
  scan_after(hours(1));
  EXPECT_THAT(events("b"), ElementsAre(Event::none));
  EXPECT_THAT(events("c"), ElementsAre(Event::created));
}

class HistoryOfTwoDrivesTest : public HistoryTest {
 protected:
  HistoryOfTwoDrivesTest() : HistoryTest({"one", "two"}) {}

  void remove_second_drive() { std::filesystem::rename(drive(1), aside_); }
  void return_second_drive() { std::filesystem::rename(aside_, drive(1)); }

 private:
  const std::filesystem::path aside_ = temp.path() / "aside";
};

TEST_F(HistoryOfTwoDrivesTest, DriveThatReturns_BringsNothingNew) {
  make_file("both/file", 1);
  write_file(on_drive("both/file-2", 1), 1'000);
  write_file(on_drive("second/file", 1), 1'000);
  remove_second_drive();
  const std::int64_t first = scan_after(hours(1));
  EXPECT_FALSE(points("both").back().complete);
  make_marked("fresh/file", 5);
  scan_after(hours(1));
  EXPECT_THAT(events("fresh"), ElementsAre(Event::created)) << "its drive was read";
  return_second_drive();
  scan_after(hours(1));
  EXPECT_THAT(events("second"), ElementsAre(Event::none));
  EXPECT_EQ(growth("second", first).bytes, 0);
  EXPECT_EQ(growth("both", first).bytes, 1'000);
  EXPECT_FALSE(growth("both", first).complete);
  EXPECT_TRUE(points("fresh").back().complete) << "of the same totals";
  write_file(on_drive("later/file", 1), 5);
  mark("later");
  scan_after(hours(1));
  EXPECT_THAT(events("later"), ElementsAre(Event::created));
}

TEST_F(HistoryOfTwoDrivesTest, MissingDrive_LeavesNoTotalComplete) {
  make_file("a/file", 1);
  write_file(on_drive("a/file-2", 1), 1);
  scan_after(hours(1));
  remove_second_drive();
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(2, 2)) << "it keeps its totals";
  EXPECT_FALSE(points("a").back().complete);
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(2, 2)) << "once";
}

TEST_F(HistoryTest, MountedOverDirectory_IsEmpty) {
  make_file("a/b/file", 100);
  const std::int64_t before = scan_after(hours(1));
  reader.mount_points.insert("a");
  mark("a");
  scan_after(hours(1));
  EXPECT_THAT(bytes("a"), ElementsAre(100, 0));
  EXPECT_THAT(events("a/b"), ElementsAre(Event::none, Event::deleted));
  EXPECT_EQ(growth("a", before).change, Change::grown);
}

TEST_F(HistoryTest, NamesOfAnyBytes_AreKept) {
  const std::string name("\x01\xff'\n\"");
  make_file("a/file", 1);
  const std::int64_t before = scan_after(hours(1));
  make_marked(name + "/" + name + "/file", 9);
  scan_after(hours(1));
  EXPECT_EQ(growth(name + "/" + name, before).bytes, 9);
}

TEST_F(HistoryTest, OrderByGrowth_ListsTheLargestChangeFirst) {
  for (const char* const path : {"grows/f", "shrinks/f", "same/f"}) make_file(path, 1000);
  make_file("none/deep/f", 1);
  const std::int64_t before = scan_after(hours(1));
  make_marked("grows/more", 500);
  make_marked("shrinks/f", 100);
  scan_after(hours(1));
  const Usage usage = usage_since("", before, 1, UsageOrder::growth);
  std::vector<std::string> order;
  for (const UsageEntry& child : usage.total.children) order.push_back(child.path);
  EXPECT_THAT(order, ElementsAre("shrinks", "grows", "none", "same"));
  UsageOptions asked;
  asked.order = UsageOrder::growth;
  asked.since = wall_time(before);
  asked.children_max = 1;
  const auto cut = query_usage(*database, "", asked);
  ASSERT_TRUE(cut && *cut);
  EXPECT_EQ((*cut)->total.rest.growth->bytes, 500);
}

TEST_F(HistoryTest, BoundOfPaths_EvictsDeletedDirectoriesFirst) {
  options.history.paths_max = 4;
  for (const char* const path : {"a/f", "b/f", "c/f"}) make_file(path, 1);
  scan_after(hours(1));
  make_marked("d/f", 1);
  scan_after(hours(1));
  EXPECT_EQ(last.history.refused, 1U);
  EXPECT_THAT(points("d"), IsEmpty());
  EXPECT_TRUE(usage_since("", 0).history_is_full);
  remove_marked("b");
  scan_after(hours(1));
  remove_marked("a");
  scan_after(hours(1));
  make_marked("e/f", 1);
  scan_after(hours(1));
  EXPECT_THAT(events("e"), ElementsAre(Event::created));
  EXPECT_THAT(points("b"), IsEmpty()) << "it was deleted first";
  EXPECT_THAT(events("a"), ElementsAre(Event::none, Event::deleted));
  EXPECT_EQ(last.history.paths, 4U);
}

TEST_F(HistoryTest, NewAndDeletedDirectory_AreNamed) {
  make_file("a/file", 5);
  const std::int64_t before = scan_after(hours(1));
  make_marked("new/x/file", 20);
  scan_after(hours(1));
  EXPECT_THAT(events("a"), ElementsAre(Event::none)) << "it may be older than its history";
  EXPECT_THAT(events("new/x"), ElementsAre(Event::created));
  EXPECT_EQ(growth("new", before).change, Change::created);
  EXPECT_EQ(growth("new", before).bytes, 20);
  remove_marked("a");
  const std::int64_t deleted = scan_after(hours(1));
  EXPECT_THAT(events("a"), ElementsAre(Event::none, Event::deleted));
  const Usage usage = usage_since("", before);
  ASSERT_EQ(usage.total.children.size(), 2U);
  EXPECT_EQ(usage.total.children[0].path, "a");
  EXPECT_EQ(usage.total.children[0].bytes, 0U);
  EXPECT_EQ(usage.total.children[0].growth->bytes, -5);
  EXPECT_EQ(usage.total.children[0].growth->change, Change::deleted);
  EXPECT_EQ(usage.total.growth->bytes, 15);
  EXPECT_EQ(usage_since("", deleted).total.children.size(), 1U) << "it was deleted before";
  EXPECT_EQ(growth("a", before).change, Change::deleted) << "asked for itself";
}

TEST_F(HistoryTest, BoundOfPoints_KeepsTheNewest) {
  options.history.points_max = 8;
  make_file("a/f", 1);
  make_file("b/f", 1);
  for (std::size_t size = 2; size < 20; ++size) {
    make_marked("a/f", size);
    scan_after(hours(1));
    EXPECT_LE(last.history.points, 8U);
    EXPECT_EQ(points("a").back().figures.bytes, size);
    EXPECT_EQ(points("").back().figures.bytes, size + 1);
  }
}

}  // namespace
}  // namespace spoor::scanner
