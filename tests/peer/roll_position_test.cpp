#include "peer/roll_position.h"

#include <gmock/gmock.h>

namespace spoor::peer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const EtcdPlace place{"spoor", "test"};

Roll roll_with(const std::vector<std::string>& forgotten) {
  Roll roll;
  for (const std::string& name : forgotten) roll.forgotten = roll.forgotten.with(name);
  roll.cluster_id = "77";
  roll.revision = 100;
  return roll;
}

std::string position(const Roll& roll) { return RollPosition::of(roll, place).to_text(); }

tracker::Cursors cursors_of(const std::vector<std::string>& names) {
  tracker::Cursors cursors;
  for (const std::string& name : names) cursors[name];
  return cursors;
}

TEST(ForgottenTest, IsReadAsItWasWritten) {
  Forgotten forgotten;
  for (std::size_t i = 0; i < Forgotten::recent_max + 5; ++i) {
    const auto read = Forgotten::parse(forgotten.to_value());
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(*read, forgotten);
    forgotten = forgotten.with("n" + std::to_string(i));
  }
  EXPECT_EQ(forgotten.count, Forgotten::recent_max + 5);
  EXPECT_EQ(forgotten.recent.size(), Forgotten::recent_max);
  EXPECT_EQ(forgotten.recent.back(), "n104");
}

TEST(ForgottenTest, AnythingElseIsNone) {
  for (const std::string bad :
       {"", "[]", "{}", R"({"count":1})", R"({"count":-1,"recent":[]})", R"({"count":"1","recent":[]})",
        R"({"count":1,"recent":["a","b"]})", R"({"count":2,"recent":[1]})", R"({"count":2,"recent":{}})",
        R"({"count":18446744073709551615,"recent":[]})"}) {
    EXPECT_FALSE(Forgotten::parse(bad)) << bad;
  }
  EXPECT_FALSE(Forgotten::parse(R"({"count":1,"recent":[]})" + std::string(200'000, ' ')));
}

TEST(RollPositionTest, NothingForgottenIsNoGap) {
  const Roll roll = roll_with({"x"});
  EXPECT_THAT(gaps_since(position(roll), roll, place, cursors_of({"a"})), IsEmpty());
  Roll later = roll;
  later.revision += 1000;
  EXPECT_THAT(gaps_since(position(roll), later, place, cursors_of({"a"})), IsEmpty());
}

TEST(RollPositionTest, WhoWasForgottenUnreadIsAGap) {
  const std::string before = position(roll_with({"x"}));
  const Roll now = roll_with({"x", "y", "z"});
  EXPECT_THAT(gaps_since(before, now, place, cursors_of({"y"})), ElementsAre(HasSubstr("'z'")));
  EXPECT_THAT(gaps_since(before, now, place, cursors_of({"y", "z"})), IsEmpty())
      << "their own gaps come once nobody is silent";
  EXPECT_THAT(gaps_since(position(now), now, place, cursors_of({})), IsEmpty());
}

TEST(RollPositionTest, MoreThanAreKeptByNameAreAGap) {
  std::vector<std::string> names(Forgotten::recent_max + 2, "x");
  const Roll now = roll_with(names);
  EXPECT_THAT(gaps_since(position(roll_with({"x"})), now, place, cursors_of({"x"})),
              ElementsAre(HasSubstr("101 members")));
  EXPECT_THAT(gaps_since(position(roll_with({"x", "x"})), now, place, cursors_of({"x"})), IsEmpty());
}

TEST(RollPositionTest, AnotherEtcdIsAGap) {
  const Roll roll = roll_with({"x", "y"});
  const auto cursors = cursors_of({"x", "y"});
  Roll other = roll;
  other.cluster_id = "78";
  EXPECT_THAT(gaps_since(position(roll), other, place, cursors),
              ElementsAre(HasSubstr("not the one it was")));
  Roll restored = roll;
  restored.revision -= 1;
  EXPECT_THAT(gaps_since(position(roll), restored, place, cursors),
              ElementsAre(HasSubstr("not the one it was")));
  Roll emptied = roll_with({"x"});
  emptied.revision = roll.revision;
  EXPECT_THAT(gaps_since(position(roll), emptied, place, cursors),
              ElementsAre(HasSubstr("not the one it was")));
  EXPECT_THAT(gaps_since(position(roll), roll, {"spoor", "test2"}, cursors),
              ElementsAre(HasSubstr("never read before")));
}

TEST(RollPositionTest, OnlyTheFirstScanOfAllNeedsNoPosition) {
  const Roll roll = roll_with({"x"});
  EXPECT_THAT(gaps_since("", roll, place, {}), IsEmpty()) << "it walks everything anyway";
  EXPECT_THAT(gaps_since("", roll, place, cursors_of({"a"})), ElementsAre(HasSubstr("never read before")));
  for (const std::string bad : {"x", "[]", "{}", R"({"folder":1})"}) {
    EXPECT_THAT(gaps_since(bad, roll, place, {}), ElementsAre(HasSubstr("never read before"))) << bad;
  }
}

}  // namespace
}  // namespace spoor::peer
