// The bound on the bytes of tree marks, wherever they are kept, and what an older version left beyond it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/byte_codec.h"
#include "tests/tracker/node.h"
#include "tracker/storage/mark_set_codec.h"
#include "tracker/storage/recovery.h"

namespace spoor::tracker {
namespace {

// Siblings of 1,000 bytes and more in a directory of their own: beyond the bound they join to it.
std::string directory(std::size_t cycle) {
  std::string path = fmt::format("cycle-{}", cycle);
  while (path.size() < 1'000) path += "/" + std::string(100, 'x');
  return path;
}

std::string long_path(std::size_t cycle, std::size_t number) {
  return fmt::format("{}/{}", directory(cycle), number);
}

// What an older version, which bounds the number alone, has after these marks.
TreeMarks of_older_version(const std::vector<std::string>& paths) {
  TreeMarks marks;
  for (const std::string& path : paths) marks.add(path, TreeMarks::no_bytes_max);
  return marks;
}

std::vector<std::string> long_paths(std::size_t count) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < count; ++i) paths.push_back(long_path(1, i));
  return paths;
}

std::shared_ptr<const MarkSet> set_of(TreeMarks trees) {
  MarkSet marks;
  marks.set_trees(std::move(trees));
  return std::make_shared<const MarkSet>(std::move(marks));
}

std::string encoded(const MarkSet& marks) {
  base::ByteWriter out;
  encode_mark_set(out, marks);
  return out.take();
}

class TreeMarkBytesTest : public ::testing::Test {
 protected:
  TreeMarkBytesTest() { make_directories(files_); }

  fakes::MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

TEST_F(TreeMarkBytesTest, EveryCycleAtByteBound_KeepsStateAndAnswersSmall) {
  Tracker tracker(small_options(), clock_, Tracker::born(instance_of(1), clock_));
  const std::size_t cycles = small_options().history_max + 1;
  for (std::size_t cycle = 1; cycle <= cycles; ++cycle) {
    tracker.advance({cycle});
    for (std::size_t i = 0; i < 2'000; ++i) mark(tracker, {tree(long_path(cycle, i))});
  }
  const TrackerState state = tracker.state();
  ASSERT_EQ(state.history.size(), cycles - 1);
  EXPECT_LE(bytes_of(state).size(), cycles * (TreeMarks::bytes_max + 2 * TreeMarks::count_max) + 1'000);
  const MarkSet all = tracker.cycle(read_all(tracker)).marks;
  EXPECT_LE(all.tree_marks().bytes(), TreeMarks::bytes_max);
  for (std::size_t cycle = 1; cycle <= cycles; ++cycle) {
    for (std::size_t i = 0; i < 2'000; i += 100) ASSERT_TRUE(all.tree_marks().covers(long_path(cycle, i)));
  }
}

TEST_F(TreeMarkBytesTest, TreeMarks_DoNotReduceFilterMemory) {
  const auto levels_after = [this](std::size_t trees) {
    auto options = small_options();
    options.memory_bytes_max = 1'000'000;
    Tracker tracker(options, clock_, Tracker::born(instance_of(1), clock_));
    for (std::size_t cycle = 1; cycle <= 10; ++cycle) {
      tracker.advance({cycle});
      for (std::size_t i = 0; i < trees; ++i) mark(tracker, {tree(long_path(cycle, i))});
    }
    tracker.advance({11});
    for (int i = 0; i < 5'000; ++i) mark(tracker, {dir(std::to_string(i))});
    const TrackerStatus status = tracker.status();
    EXPECT_FALSE(status.cycles.front().saturated) << trees;
    return std::pair(status.cycles.front().levels, status.memory_bytes);
  };
  EXPECT_EQ(levels_after(500), levels_after(0));
}

TEST_F(TreeMarkBytesTest, MarkSetOfOlderVersion_IsJoinedWhenDecoded) {
  const auto paths = long_paths(5'000);
  const std::string bytes = encoded(*set_of(of_older_version(paths)));
  ASSERT_GT(bytes.size(), 5'000'000U);
  base::ByteReader in(bytes);
  const auto marks = decode_mark_set(in);
  ASSERT_TRUE(marks);
  EXPECT_LE(marks->tree_marks().bytes(), TreeMarks::bytes_max);
  for (const std::string& path : paths) ASSERT_TRUE(marks->tree_marks().covers(path));
}

// A snapshot's current cycle is joined by the run that takes it over, which has it in its journal then.
TEST_F(TreeMarkBytesTest, SnapshotOfOlderVersion_IsJoinedByNextRun) {
  const auto paths = long_paths(5'000);
  {
    Node node(files_, clock_, node_options(Durability::disk));
    TrackerState state = node.tracker().state();
    state.current = {2};
    state.current_marks = set_of(of_older_version(paths));
    state.history = {{{1}, set_of(of_older_version(paths))}};
    for (const auto& drive : node_drives) {
      files_.put(snapshot_file(drive), encode_snapshot({node_owner, 9, clock_.wall_now(), state}));
    }
  }
  for (int run = 0; run < 3; ++run) {
    Node node(files_, clock_, node_options(Durability::disk));
    EXPECT_EQ(node.loss(), "");
    const TrackerState state = node.tracker().state();
    EXPECT_LE(state.current_marks->tree_marks().bytes(), TreeMarks::bytes_max);
    ASSERT_EQ(state.history.size(), 1U);
    EXPECT_LE(state.history[0].marks->tree_marks().bytes(), TreeMarks::bytes_max);
    for (const std::string& path : paths) {
      ASSERT_TRUE(state.current_marks->tree_marks().covers(path));
      ASSERT_TRUE(state.history[0].marks->tree_marks().covers(path));
    }
    // One that only the join covers adds nothing, and has no record; the run is killed.
    const MarkOutcome outcome = mark(node.tracker(), {tree(fmt::format("{}/of run {}", directory(1), run))});
    EXPECT_EQ(outcome.added, 0U);
    ASSERT_TRUE(node.persistence().commit());
    EXPECT_LE(outcome.position, node.persistence().durable_position());
    for (int before = 0; before <= run; ++before) {
      EXPECT_TRUE(node.is_dirty(fmt::format("{}/of run {}/below", directory(1), before)));
    }
  }
}

// Joined again and again: short marks deep down beside long ones, of which each join records no more than it
// changes.
TEST_F(TreeMarkBytesTest, RepeatedJoins_RecordLittleMoreThanTheMarks) {
  Tracker tracker(small_options(), clock_, Tracker::born(instance_of(1), clock_));
  std::size_t bytes = 0;
  const auto add = [&](const std::string& path) {
    bytes += path.size();
    mark(tracker, {tree(path)});
  };
  for (std::size_t i = 0; i < 7'000; ++i) add(fmt::format("{}/{}", std::string(90, 'x'), i));
  for (std::size_t i = 0; i < 24'000; ++i) add(fmt::format("s/{}/{}", i / 3'000, i));
  EXPECT_LE(tracker.position(), 4 * bytes);
}

TEST_F(TreeMarkBytesTest, TreeMarkCountBeyondMaximum_IsRefused) {
  base::ByteWriter out;
  out.u16(0);
  out.u32(TreeMarks::count_max + 1);
  for (std::size_t i = 0; i <= TreeMarks::count_max; ++i) out.short_string(std::to_string(i));
  const std::string bytes = out.take();
  base::ByteReader in(bytes);
  EXPECT_FALSE(decode_mark_set(in));
}

TEST_F(TreeMarkBytesTest, MarkCoveredOnlyByJoin_SurvivesCrash) {
  std::size_t joined = 0;
  {
    Node node(files_, clock_, node_options(Durability::disk));
    for (std::size_t i = 0; i < 1'500; ++i) mark(node.tracker(), {tree(long_path(i % 3, i))});
    // With these a replay of the marks alone would be within the bound, and join nothing.
    mark(node.tracker(), {tree("cycle-1"), tree("cycle-2")});
    joined = node.tracker().status().cycles.front().tree_marks;
    EXPECT_LT(joined, 1'500U);
    EXPECT_EQ(mark(node.tracker(), {tree(directory(0) + "/other")}).added, 0U);
    ASSERT_TRUE(node.mark_durably(tree(directory(0) + "/other")));
  }
  files_.crash();
  Node node(files_, clock_, node_options(Durability::disk));
  EXPECT_EQ(node.loss(), "");
  EXPECT_TRUE(node.is_dirty(directory(0) + "/other/below"));
  EXPECT_EQ(node.tracker().status().cycles.front().tree_marks, joined);
}

// Its joins have no records: a replay has to come to them by the number alone. Joined by bytes at the first
// record, the long marks would leave so much room that the marks of the later records stayed exact.
TEST_F(TreeMarkBytesTest, JournalOfOlderVersion_CoversWhatItsJoinsCovered) {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < 9'000; ++i) paths.push_back(fmt::format("wide/{}{}", i, std::string(200, 'x')));
  TrackerState base = Tracker::born(instance_of(1), clock_);
  base.current_marks = set_of(of_older_version(paths));
  const Snapshot decoded = decode_snapshot(encode_snapshot(snapshot_of(base))).value();

  const SegmentHeader header{{"cluster", "node"}, instance_of(1), 0, 0};
  std::string records;
  for (std::size_t i = 0; i < 1'001; ++i) {
    paths.push_back(i == 0 ? "first/a/b/c" : fmt::format("late/a/b/c/{}", i));
    append_record(records, tree(paths.back()));
  }
  const TreeMarks older = of_older_version(paths);
  ASSERT_TRUE(older.covers("late/unrecorded"));

  LoadedSegment segment;
  const std::string bytes = encode_frame(header.instance, 0, records);
  segment.header = header;
  segment.frames = read_frames(header, bytes);
  LoadedJournal journal;
  journal.segments.push_back(std::move(segment));
  const Replay replay = replay_journal(journal, decoded.state, small_options(), clock_, true);
  EXPECT_EQ(replay.missing, "");
  for (const std::string& path : older) {
    ASSERT_TRUE(replay.state.current_marks->tree_marks().covers(path)) << path;
  }
}

}  // namespace
}  // namespace spoor::tracker
