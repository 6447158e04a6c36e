#include "peer/gather/cycle_exchange.h"

#include <gtest/gtest.h>

namespace spoor::peer {
namespace {

TEST(CycleRequestTest, ToJsonAndParse_KeepsAllFields) {
  CycleQuery query;
  query.cluster = "c";
  query.request = {{13}, {5}, tracker::InstanceId::random(), false, 63, true};
  query.member = tracker::Joined{{"rack/n1", tracker::InstanceId::random()}, 3};
  const auto parsed = parse_cycle_query(to_json(query));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->cluster, "c");
  EXPECT_EQ(parsed->request.current.value, 13U);
  EXPECT_EQ(parsed->request.oldest.value, 5U);
  EXPECT_EQ(parsed->request.instance, query.request.instance);
  EXPECT_FALSE(parsed->request.marks_wanted);
  EXPECT_EQ(parsed->request.start_level, 63U);
  EXPECT_TRUE(parsed->request.members_wanted);
  EXPECT_EQ(parsed->member, query.member);
}

TEST(CycleRequestTest, MissingFields_HaveDefaults) {
  const auto parsed = parse_cycle_query(R"({"cluster":"c"})");
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->request.current.value, 0U);
  EXPECT_TRUE(parsed->request.instance.is_none());
  EXPECT_TRUE(parsed->request.marks_wanted);
  EXPECT_EQ(parsed->request.start_level, 0U);
  EXPECT_FALSE(parsed->request.members_wanted);
  EXPECT_FALSE(parsed->member);
}

TEST(CycleRequestTest, UnparsableInstanceId_IsReadAsNone) {
  const auto parsed = parse_cycle_query(R"({"cluster":"c","instance":"of another kind"})");
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->request.instance.is_none());
}

TEST(CycleRequestTest, WrongTypesAndOutOfRangeNumbers_AreRefused) {
  for (const char* text : {"",
                           "[]",
                           "{",
                           R"({"current":-1})",
                           R"({"current":1.5})",
                           R"({"current":"1"})",
                           R"({"current":4611686018427387905})",
                           R"({"oldest":18446744073709551615})",
                           R"({"cluster":1})",
                           R"({"instance":7})",
                           R"({"start_level":-1})",
                           R"({"start_level":64})",
                           R"({"start_level":"1"})",
                           R"({"start_level":18446744073709551615})",
                           R"({"marks":1})",
                           R"({"members":1})",
                           R"({"member":"n"})",
                           R"({"member":{}})",
                           R"({"member":{"name":"n"}})",
                           R"({"member":{"name":"n","instance":"1"}})",
                           R"({"member":{"name":"n","instance":"00000000000000000000000000000000"}})",
                           R"({"member":{"name":"a b","instance":"11111111111111111111111111111111"}})"}) {
    EXPECT_FALSE(parse_cycle_query(text)) << text;
  }
}

}  // namespace
}  // namespace spoor::peer
