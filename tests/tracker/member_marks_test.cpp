#include "tracker/cycles/member_marks.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/tracker/node.h"

namespace spoor::tracker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::SizeIs;

const PeerId a{"a", instance_of(1)};
const PeerId b{"b", instance_of(2)};

MarkSet set_of(std::initializer_list<Mark> marks) {
  MarkSet set;
  for (const Mark& mark : marks) set.add_tree(mark.path);
  return set;
}

MarkSet set_with_records(std::size_t count) {
  TreeMarks::Members members;
  for (std::size_t number = 0; number < count; ++number)
    TreeMarks::add_member(joined_mark({{std::to_string(number), instance_of(1)}, 0}).path, members);
  TreeMarks trees;
  trees.add_members(members);
  MarkSet set;
  set.set_trees(std::move(trees));
  return set;
}

TEST(MemberMarksTest, RecordsOfALaterAndAnEarlierRun_TheLaterIsKept) {
  TreeMarks trees;
  trees.add_members({{"a", 5}});
  trees.add_members({{"a", 1}, {"b", 1}});
  EXPECT_EQ(trees.members(), (TreeMarks::Members{{"a", 5}, {"b", 1}}));
}

TEST(MemberMarksTest, AnyNodeName_IsRestoredFromANormalisedPath) {
  for (const std::string& name :
       {std::string("a"), std::string("rack/1/n"), std::string("."), std::string(".."), std::string("/"),
        std::string("a/"), std::string("./"), std::string(255, 'x')}) {
    const PeerId id{name, instance_of(7)};
    EXPECT_TRUE(is_normalised(joined_mark({id, 0}).path)) << name;
    const MemberMarks found = member_marks(set_of({joined_mark({id, 3})}));
    EXPECT_THAT(found.joined, ElementsAre(testing::Pair(id, 3))) << name;
    EXPECT_FALSE(found.is_incomplete);
  }
}

TEST(MemberMarksTest, Retirements_TheLargestRunAndThenTheLargestCycleCount) {
  for (const std::string& name : {std::string("rack/1"), std::string(".."), std::string(255, 'x')}) {
    const PeerId id{name, instance_of(7)};
    const std::uint64_t run = ~std::uint64_t{0};
    EXPECT_TRUE(is_normalised(retired_mark(id, {run, {CycleId::value_max}}).path));
    EXPECT_LE(retired_mark(id, {run, {CycleId::value_max}}).path.size() + 2, TreeMarks::member_bytes_max);
    const MemberMarks found = member_marks(set_of({retired_mark(id, {3, {9}}), retired_mark(id, {4, {1}}),
                                                   retired_mark(id, {4, {2}}), joined_mark({id, 5})}));
    EXPECT_THAT(found.retired, ElementsAre(testing::Pair(id, Retired{4, {2}}))) << name;
    EXPECT_THAT(found.joined, ElementsAre(testing::Pair(id, 5)));
    EXPECT_FALSE(found.is_incomplete);
  }
}

TEST(MemberMarksTest, RecordsOfAnotherMeaning_AreIncomplete) {
  const std::string instance = instance_of(1).to_string();
  for (const std::string& path :
       {std::string(".spoor"), std::string(".spoor/x"), std::string(".spoor/joined"),
        ".spoor/joined-" + instance, ".spoor/joined-" + instance + "/a",
        ".spoor/joined-1" + instance + "/a/1", ".spoor/left-" + instance + "/a/1",
        ".spoor/retired-" + instance + "/a/1", ".spoor/retired-x-" + instance + "/a/1",
        ".spoor/retired-1-" + instance, std::string(".spoor/retired-1/a/1"),
        ".spoor/joined-" + instance + "/a b:c/1", ".spoor/joined-" + instance + "/a:b/1",
        ".spoor/joined-" + std::string(32, '0') + "/a/1"}) {
    const MemberMarks found = member_marks(set_of({tree(path)}));
    EXPECT_TRUE(found.is_incomplete) << path;
    EXPECT_THAT(found.joined, IsEmpty()) << path;
  }
}

TEST(MemberMarksTest, TreeMarks_AndRecordsAreKeptApart) {
  const MarkSet only_records = set_of({joined_mark({a, 0})});
  EXPECT_FALSE(only_records.empty());
  EXPECT_FALSE(contains(only_records, "x"));
  EXPECT_FALSE(only_records.tree_marks().has_below(""));
  TreeMarks trees;
  EXPECT_TRUE(trees.add(""));
  EXPECT_TRUE(trees.add(joined_mark({a, 2}).path)) << "the root does not cover it";
  EXPECT_FALSE(trees.add(joined_mark({a, 2}).path));
  EXPECT_FALSE(trees.add(joined_mark({a, 1}).path));
  EXPECT_TRUE(trees.add(joined_mark({a, 10}).path)) << "a later run takes its place";
  EXPECT_TRUE(trees.add(joined_mark({b, 0}).path));
  EXPECT_EQ(trees.size(), 1U);
  MarkSet set;
  set.set_trees(trees);
  EXPECT_THAT(member_marks(set).joined, ElementsAre(testing::Pair(a, 10), testing::Pair(b, 0)));
  trees.drop_members();
  EXPECT_THAT(trees.members(), IsEmpty());
  EXPECT_TRUE(trees.covers("x"));
}

TEST(MemberMarksTest, TooManyRecords_BecomeOneForAll) {
  EXPECT_FALSE(member_marks(set_with_records(TreeMarks::members_max)).is_incomplete);
  MarkSet set = set_with_records(TreeMarks::members_max + 1);
  EXPECT_TRUE(member_marks(set).is_incomplete);
  EXPECT_THAT(set.tree_marks().members(), ElementsAre(Key(std::string(TreeMarks::member_top))));
  EXPECT_TRUE(set.tree_marks().covers(joined_mark({a, 0}).path));
  set.merge(set_of({joined_mark({a, 0})}));
  EXPECT_THAT(set.tree_marks().members(), SizeIs(1));
}

TEST(MemberMarksTest, Merge_KeepsTheRecordsOfBoth) {
  MarkSet one = set_of({joined_mark({a, 0})});
  one.merge(set_of({joined_mark({b, 0}), tree("x")}));
  EXPECT_THAT(member_marks(one).joined, ElementsAre(Key(a), Key(b)));
  MarkSet other = set_of({tree("x")});
  other.merge(set_of({joined_mark({a, 0})}));
  EXPECT_THAT(member_marks(other).joined, ElementsAre(Key(a)));
  EXPECT_TRUE(other.tree_marks().covers("x"));
}

TEST(MemberMarksTest, Codec_KeepsAllRecordsBesideAllTreeMarks) {
  MarkSet set = set_with_records(TreeMarks::members_max);
  TreeMarks trees = set.tree_marks();
  for (std::size_t number = 0; number < TreeMarks::count_max; ++number) trees.add(std::to_string(number));
  set.set_trees(std::move(trees));
  EXPECT_EQ(decoded(encoded(set)).value().tree_marks(), set.tree_marks());
}

// --- in a tracker ---

class TrackerMembersTest : public testing::Test {
 protected:
  MarkOutcome record(const PeerId& id) {
    const Mark mark = joined_mark({id, 0});
    return tracker_.mark({&mark, 1});
  }

  std::map<PeerId, std::uint64_t> read(CycleId oldest, bool marks_wanted = true) {
    CycleRequest request{.current = {}, .oldest = oldest, .instance = instance_of(9)};
    request.marks_wanted = marks_wanted;
    request.members_wanted = !marks_wanted;
    return member_marks(tracker_.cycle(request).marks).joined;
  }

  static Tracker::Options options() {
    Tracker::Options options = small_options();
    options.history_max = 2;
    options.memory_bytes_max = 10 * options.levels.shape(0).byte_count();
    return options;
  }

  fakes::ManualClock clock_;
  Tracker tracker_{options(), clock_, Tracker::born(instance_of(9), clock_)};
};

TEST_F(TrackerMembersTest, RecordInTheHistory_IsNotMadeAgain) {
  EXPECT_EQ(record(a).added, 1U);
  EXPECT_EQ(record(a).added, 0U);
  for (std::uint64_t cycle = 2; cycle < 10; ++cycle) {
    tracker_.advance({cycle});
    const MarkOutcome again = record(a);
    EXPECT_EQ(again.added, 0U);
    EXPECT_EQ(again.position, tracker_.position()) << "durable with all that came before";
    mark(tracker_, {dir("x/" + std::to_string(cycle))});
  }
  EXPECT_THAT(read({1}), ElementsAre(Key(a)));
  EXPECT_THAT(read({9}), IsEmpty()) << "a scan whose cursor is there has read it";
}

TEST_F(TrackerMembersTest, RecordsUnknownInTheHistory_AreMadeInTheCurrentCycle) {
  mark(tracker_, {tree(std::string(TreeMarks::member_top))});
  tracker_.advance({2});
  EXPECT_EQ(record(a).added, 1U);
  EXPECT_THAT(read({2}), ElementsAre(Key(a)));
}

TEST_F(TrackerMembersTest, MembersAlone_AreReadWithoutMarks) {
  record(a);
  tracker_.advance({2});
  record(b);
  mark(tracker_, {dir("x"), tree("y")});
  EXPECT_THAT(read({1}, false), ElementsAre(Key(a), Key(b)));
  EXPECT_THAT(read({2}, false), ElementsAre(Key(b)));
  CycleRequest request{.current = {}, .oldest = {1}, .instance = instance_of(9), .marks_wanted = false};
  request.members_wanted = true;
  const MarkSet answer = tracker_.cycle(request).marks;
  EXPECT_FALSE(contains(answer, "x"));
  EXPECT_FALSE(contains(answer, "y/z"));
  request.members_wanted = false;
  EXPECT_TRUE(tracker_.cycle(request).marks.empty());
}

// A scan whose cursor was in the dropped span reads a gap, and has to learn of the member nevertheless.
TEST_F(TrackerMembersTest, SpanDropped_ItsRecordsAreInTheCurrentCycle) {
  record(a);
  for (std::uint64_t cycle = 2; tracker_.status().spans_dropped == 0; ++cycle) {
    ASSERT_LT(cycle, 100U);
    // More than one filter of level 0 holds.
    for (int number = 0; number < 400; ++number)
      mark(tracker_, {dir(std::to_string(cycle) + "/" + std::to_string(number))});
    tracker_.advance({cycle});
  }
  EXPECT_THAT(read({1}), ElementsAre(Key(a)));
}

TEST(MemberRecoveryTest, JournalReplayAndSnapshot_RestoreRecords) {
  fakes::MemoryFileSystem files;
  fakes::ManualClock clock;
  make_directories(files);
  {
    Node node(files, clock, node_options(Durability::disk));
    EXPECT_TRUE(node.mark_durably(joined_mark({{"..", instance_of(1)}, 0})));
    EXPECT_TRUE(node.mark_durably(dir("x")));
  }
  files.crash();
  {
    Node node(files, clock, node_options(Durability::disk));
    EXPECT_EQ(node.loss(), "");
    EXPECT_THAT(member_marks(*node.tracker().state().current_marks).joined,
                ElementsAre(Key(PeerId{"..", instance_of(1)})));
    EXPECT_TRUE(node.is_dirty("x"));
    EXPECT_TRUE(node.mark_durably(joined_mark({b, 0})));
    node.save();
    node.stop();
  }
  Node node(files, clock, node_options(Durability::disk));
  EXPECT_THAT(member_marks(*node.tracker().state().current_marks).joined, SizeIs(2));
}

}  // namespace
}  // namespace spoor::tracker
