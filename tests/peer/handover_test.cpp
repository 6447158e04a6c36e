#include "peer/gather/handover.h"

#include "tests/peer/gather_fixture.h"

namespace spoor::peer {
namespace {

using tracker::CycleId;

class HandoverTest : public GatherFixture {
 protected:
  HandoverTest() : GatherFixture({"n"}) {}

  tracker::Tracker& tracker() { return *cluster_["n"].tracker; }
  static bool holds(const tracker::MarkSet& marks, std::string_view path) {
    return marks.may_contain(path, tracker::hash_path(path));
  }
  static HttpResponse ok(std::string body) { return {200, "application/json", std::move(body)}; }
};

TEST_F(HandoverTest, UnreadFrom_IsTheCycleOfTheBookOrTheBirth) {
  const PeerId id = cluster_.id("n");
  EXPECT_EQ(unread_from({}, id), CycleId{0});
  EXPECT_EQ(unread_from({{id, {.cycle = {7}}}}, id), CycleId{7});
  EXPECT_EQ(unread_from({{{"n", tracker::InstanceId::random()}, {.cycle = {7}}}}, id), CycleId{0});
}

TEST_F(HandoverTest, UnreadResponse_IsReadAsWritten) {
  for (const UnreadFrom& from :
       {UnreadFrom(), UnreadFrom(CycleId{0}), UnreadFrom(CycleId{CycleId::value_max})}) {
    const auto read = read_unread(ok(unread_json(from)));
    ASSERT_TRUE(read);
    EXPECT_EQ(*read, from);
  }
}

// A response that is not understood must not count as "nothing is unread".
TEST_F(HandoverTest, OtherResponses_AreErrors) {
  for (const char* body : {"", "{}", "[]", "7", R"({"unread_from":-1})", R"({"unread_from":"7"})",
                           R"({"unread_from":1.5})", R"({"unread_from":18446744073709551615})"})
    EXPECT_FALSE(read_unread(ok(body))) << body;
  EXPECT_FALSE(read_unread(HttpResponse{404, "", ""}));
  EXPECT_FALSE(read_unread(base::system_error(ECONNREFUSED, "n")));
}

TEST_F(HandoverTest, MarksFromACycle_HoldLaterOnesAndTheCurrentCycle) {
  mark("n", "bucket/one");
  tracker().advance({2});
  mark("n", "bucket/two");
  tracker().advance({3});
  mark("n", "bucket/three");
  const auto marks = marks_to_hand_over(tracker(), {2});
  EXPECT_FALSE(holds(marks, "bucket/one"));
  EXPECT_TRUE(holds(marks, "bucket/two"));
  EXPECT_TRUE(holds(marks, "bucket/three"));
  EXPECT_FALSE(marks.tree_marks().covers(""));
  EXPECT_TRUE(holds(marks_to_hand_over(tracker(), {0}), "bucket/one"));
  EXPECT_FALSE(marks_to_hand_over(tracker(), {0}).tree_marks().covers("")) << "it has all since its birth";
}

// A scan that has not read this node knows no member without them.
TEST_F(HandoverTest, RecordsOfMembers_AreHandedOnFromTheBirthOn) {
  const PeerId other{"other", tracker::InstanceId::random()};
  cluster_.record("n", other, 3);
  tracker().advance({2});
  mark("n", "bucket/two");
  tracker().advance({3});
  EXPECT_EQ(tracker::member_marks(marks_to_hand_over(tracker(), {3})).joined.at(other), 3U);
}

TEST_F(HandoverTest, MarksThatAreGone_BecomeAGap) {
  tracker::TrackerState later = state("n");
  later.complete_since_birth = false;
  later.oldest_kept = {5};
  later.current = {6};
  restart("n", std::move(later));
  EXPECT_TRUE(marks_to_hand_over(tracker(), {0}).tree_marks().covers(""));
  EXPECT_TRUE(marks_to_hand_over(tracker(), {4}).tree_marks().covers(""));
  EXPECT_FALSE(marks_to_hand_over(tracker(), {5}).tree_marks().covers(""));
}

TEST_F(HandoverTest, EverythingInTheirPlace_KeepsTheRecordsOfMembers) {
  const PeerId other{"other", tracker::InstanceId::random()};
  cluster_.record("n", other, 3);
  mark("n", "bucket/one");
  const auto all = everything(marks_to_hand_over(tracker(), {0}));
  EXPECT_TRUE(all.tree_marks().covers(""));
  EXPECT_TRUE(all.filters().empty());
  EXPECT_EQ(tracker::member_marks(all).joined.at(other), 3U);
}

TEST_F(HandoverTest, AdoptRequest_IsReadAsWritten) {
  CycleFrame frame{cluster_["n"].identity, 1, 2, {}};
  frame.answer.instance = cluster_.id("n").instance;
  frame.answer.current = {9};
  frame.answer.marks.add_tree("bucket");
  const HttpRequest request = adopt_request(FakeCluster::endpoint("m"), frame, {11, {4}});
  EXPECT_EQ(request.target, "/v1/peer/adopt?run=11&from=4");
  const auto query = parse_adopt_query("11", "4", request.body);
  ASSERT_TRUE(query);
  EXPECT_EQ(query->retired, (tracker::Retired{11, {4}}));
  EXPECT_EQ(query->frame.sender, frame.sender);
  EXPECT_EQ(query->frame.rules_digest, 2U);
  EXPECT_TRUE(query->frame.answer.marks.tree_marks().covers("bucket"));
  EXPECT_FALSE(parse_adopt_query({}, "4", request.body));
  EXPECT_FALSE(parse_adopt_query("11", "-4", request.body));
  EXPECT_FALSE(parse_adopt_query("11", std::to_string(CycleId::value_max + 1), request.body));
  EXPECT_FALSE(parse_adopt_query("11", "4", request.body.substr(1)));
}

}  // namespace
}  // namespace spoor::peer
