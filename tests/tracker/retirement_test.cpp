// A tracker that adopts the marks of another one, and the start after a retirement (docs/cluster.md,
// "Leaving").
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tracker/node.h"
#include "tracker/cycles/member_marks.h"

namespace spoor::tracker {
namespace {

using fakes::MemoryFileSystem;

const PeerId gone{"gone", instance_of(9)};

MarkSet marks_of_gone(std::initializer_list<std::string_view> paths) {
  MarkSet marks = mark_set_of(paths);
  marks.add_tree("bucket/tree");
  marks.add_tree(retired_mark(gone, {7, {3}}).path);
  return marks;
}

class AdoptionTest : public ::testing::Test {
 protected:
  AdoptionTest() { make_directories(files_); }

  Node start(Durability durability = Durability::disk) { return {files_, clock_, node_options(durability)}; }

  static CycleAnswer read_from(Node& node, std::uint64_t oldest) {
    CycleRequest request;
    request.oldest = {oldest};
    request.instance = node.instance();
    return node.tracker().cycle(request);
  }

  static void adopt(Node& node, MarkSet marks) {
    const auto position = node.persistence().adopt(std::move(marks));
    ASSERT_TRUE(position);
    EXPECT_LT(node.persistence().durable_position(), *position);
    ASSERT_TRUE(node.persistence().commit());
    EXPECT_GE(node.persistence().durable_position(), *position);
  }

  // A mark in cycle 1, adopted marks in cycle 2, a mark in cycle 3.
  static void expect_all(Node& node) {
    EXPECT_EQ(node.loss(), "");
    const CycleAnswer all = read_from(node, 1);
    EXPECT_FALSE(all.gap);
    for (const char* path : {"bucket/before", "bucket/adopted", "bucket/tree/x", "bucket/after"})
      EXPECT_TRUE(contains(all.marks, path)) << path;
    EXPECT_FALSE(contains(all.marks, "bucket/other"));
    EXPECT_EQ(member_marks(all.marks).retired.at(gone), (Retired{7, {3}}));
    std::vector<std::uint64_t> cycles;
    for (const ClosedSpan& span : node.tracker().state().history) cycles.push_back(span.last.value);
    EXPECT_THAT(cycles, testing::ElementsAre(1, 2));
  }

  MemoryFileSystem files_;
  fakes::ManualClock clock_;
};

// A scan whose cursor is the cycle that was current at the adoption reads what was adopted; one with the
// cursor after it does not read it again.
TEST_F(AdoptionTest, AdoptedMarks_AreReadByEachScanOnce) {
  Node node = start();
  ASSERT_TRUE(node.mark_durably(dir("bucket/before")));
  adopt(node, marks_of_gone({"bucket", "bucket/adopted"}));
  ASSERT_TRUE(node.mark_durably(dir("bucket/after")));
  expect_all(node);
  EXPECT_EQ(read_from(node, 1).current, CycleId{3});
  const CycleAnswer later = read_from(node, 3);
  EXPECT_FALSE(contains(later.marks, "bucket/adopted"));
  EXPECT_TRUE(contains(later.marks, "bucket/after"));
  EXPECT_TRUE(member_marks(later.marks).retired.empty());
  node.tracker().advance({4});
  adopt(node, marks_of_gone({"bucket/more"}));
  EXPECT_TRUE(contains(read_from(node, 4).marks, "bucket/more"));
  EXPECT_EQ(node.tracker().state().history.size(), 4U)
      << "a span of its own, though nothing was marked before";
}

TEST_F(AdoptionTest, PowerCut_IsReplayedOnceWithAndWithoutASnapshot) {
  for (const bool is_saved : {false, true}) {
    fakes::MemoryFileSystem files;
    make_directories(files);
    {
      Node node(files, clock_, node_options(Durability::disk));
      ASSERT_TRUE(node.mark_durably(dir("bucket/before")));
      adopt(node, marks_of_gone({"bucket", "bucket/adopted"}));
      if (is_saved) node.save();
      ASSERT_TRUE(node.mark_durably(dir("bucket/after")));
    }
    files.crash();
    Node node(files, clock_, node_options(Durability::disk));
    expect_all(node);
  }
}

TEST_F(AdoptionTest, NotCommitted_IsGoneWithItsRecord) {
  {
    Node node = start();
    ASSERT_TRUE(node.mark_durably(dir("bucket/before")));
    ASSERT_TRUE(node.persistence().adopt(marks_of_gone({"bucket/adopted"})));
  }
  Node node = start();
  EXPECT_EQ(node.loss(), "");
  const CycleAnswer all = read_from(node, 1);
  EXPECT_FALSE(contains(all.marks, "bucket/adopted"));
  EXPECT_TRUE(member_marks(all.marks).retired.empty());
}

// A few packed bytes may be a filter of gigabytes once spans are merged, and foreign shapes pile up.
TEST_F(AdoptionTest, LargeAndForeignFilters_AreRefusedAndNothingIsAdopted) {
  auto options = node_options(Durability::disk);
  options.tracker.memory_bytes_max = std::uint64_t{1} << 20U;
  Node node(files_, clock_, options);
  const LevelSchedule& levels = options.tracker.levels;
  std::size_t large = 0;
  while (levels.shape(large).byte_count() <= options.tracker.memory_bytes_max / 4) ++large;
  for (const BloomShape shape : {levels.shape(large), BloomShape::for_items(10, 0.1)}) {
    const auto refused = node.persistence().adopt(mark_set_of({"bucket"}, shape).packed());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, std::errc::message_size);
  }
  EXPECT_EQ(node.tracker().status().current, CycleId{1});
  EXPECT_TRUE(node.persistence().adopt(mark_set_of({"bucket"}, levels.shape(large - 1)).packed()));
}

// --- the node that has retired ---

TEST_F(AdoptionTest, RestartAfterRetirement_BeginsANewInstanceWithoutALoss) {
  for (const bool is_clean : {true, false}) {
    InstanceId before;
    CycleId current;
    {
      Node node = start();
      before = node.instance();
      ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
      ASSERT_TRUE(node.persistence().note_known({}, true));
      ASSERT_TRUE(node.persistence().note_membership(Membership::retired));
      current = node.tracker().status().current;
      if (is_clean) node.stop();
    }
    files_.crash();
    {
      Node node = start();
      EXPECT_EQ(node.loss(), "");
      EXPECT_NE(node.instance(), before);
      EXPECT_EQ(node.persistence().membership(), Membership::returned);
      EXPECT_FALSE(node.persistence().is_introduced());
      const TrackerState state = node.tracker().state();
      EXPECT_TRUE(state.complete_since_birth);
      EXPECT_GT(state.current, current) << "cycle numbers never go back";
      EXPECT_FALSE(node.is_dirty("bucket/a"));
      ASSERT_TRUE(node.mark_durably(dir("bucket/b")));
    }
    Node node = start();
    EXPECT_EQ(node.loss(), "");
    EXPECT_TRUE(node.is_dirty("bucket/b")) << "its journal is that of the new instance";
    EXPECT_EQ(node.persistence().membership(), Membership::returned) << "until a member has recorded it";
    ASSERT_TRUE(node.persistence().note_known({}, true));
    EXPECT_EQ(node.persistence().membership(), Membership::member);
  }
}

TEST_F(AdoptionTest, RestartWhileRetiring_KeepsTheInstanceAndItsMarks) {
  InstanceId before;
  {
    Node node = start();
    before = node.instance();
    ASSERT_TRUE(node.mark_durably(dir("bucket/a")));
    ASSERT_TRUE(node.persistence().note_membership(Membership::retiring));
  }
  Node node = start();
  EXPECT_EQ(node.instance(), before);
  EXPECT_EQ(node.persistence().membership(), Membership::retiring);
  EXPECT_TRUE(node.is_dirty("bucket/a"));
}

TEST_F(AdoptionTest, KnownInstance_StaysIntroducedAndKnownOnTheClocksOfEachBoot) {
  const KnownAt at{clock_.steady_now(), clock_.wall_now()};
  {
    Node node = start();
    EXPECT_FALSE(node.persistence().is_introduced());
    ASSERT_TRUE(node.persistence().note_known(at, true));
    EXPECT_TRUE(node.persistence().is_introduced());
  }
  clock_.advance(std::chrono::hours(1));
  clock_.set_wall(clock_.wall_now() + std::chrono::hours(2));
  const auto start_in = [this](const char* boot) {
    auto options = node_options(Durability::disk);
    options.boot_id = boot;
    return Node(files_, clock_, options);
  };
  EXPECT_EQ(start_in("this boot").persistence().known_at(), at);
  {
    Node node = start_in("another boot");
    EXPECT_TRUE(node.persistence().is_introduced());
    EXPECT_EQ(node.persistence().known_at(), (KnownAt{clock_.steady_now() - std::chrono::hours(3), at.wall}));
  }
  clock_.set_wall(at.wall - std::chrono::hours(1));
  EXPECT_EQ(start_in("a third boot").persistence().known_at(), std::nullopt) << "the clock was set back";
}

// So that a member that has recorded the retirement records the copy, too.
TEST_F(AdoptionTest, OldCopyOfTheFiles_StartsWithALargerRun) {
  {
    Node node = start();
  }
  const std::string copy = files_.content(node_data_dir / "instance.json").value();
  std::uint64_t run = 0;
  for (int starts = 0; starts < 3; ++starts) {
    clock_.advance(std::chrono::hours(24));
    Node node = start();
    EXPECT_GT(node.persistence().runs(), run);
    run = node.persistence().runs();
  }
  clock_.advance(std::chrono::minutes(2));
  files_.put(node_data_dir / "instance.json", copy);
  Node node = start();
  EXPECT_GT(node.persistence().runs(), run);
}

// A clock that was set back.
TEST_F(AdoptionTest, EachStart_HasALargerRunWhateverTheClock) {
  std::uint64_t run = 0;
  for (const int hours : {0, -1'000'000, 10, -5}) {
    clock_.set_wall(clock_.wall_now() + std::chrono::hours(hours));
    Node node = start();
    EXPECT_GT(node.persistence().runs(), run);
    run = node.persistence().runs();
  }
}

TEST_F(AdoptionTest, MembershipNotStored_IsAsBefore) {
  Node node = start();
  files_.fail_below(node_data_dir, EIO);
  EXPECT_FALSE(node.persistence().note_membership(Membership::retired));
  EXPECT_EQ(node.persistence().membership(), Membership::member);
}

}  // namespace
}  // namespace spoor::tracker
