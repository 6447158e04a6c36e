#include "peer/roll_position.h"

#include <gmock/gmock.h>

namespace spoor::peer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const EtcdPlace place{"spoor", "test"};

RollMember member(const std::string& name, int instance = 1) {
  return {name, "http://" + name + ":7420",
          tracker::InstanceId{{static_cast<std::uint8_t>(instance)}}.to_string()};
}

// A roll on which nobody is any more, after these have left it.
Roll roll_after(const std::vector<RollMember>& gone) {
  Roll roll;
  roll.ledger = roll.ledger.with_entry().without(member("first"));
  roll.ledger.id = "an id";
  for (const RollMember& each : gone) roll.ledger = roll.ledger.with_entry().without(each);
  roll.cluster_id = "77";
  roll.revision = 100;
  return roll;
}

std::string position(const Roll& roll) { return RollPosition::of(roll, place).to_text(); }

tracker::Cursors cursors_of(const std::vector<RollMember>& members) {
  tracker::Cursors cursors;
  for (const RollMember& each : members) {
    cursors[each.node] = {tracker::InstanceId::parse(each.instance).value(), {3}};
  }
  return cursors;
}

TEST(RollLedgerTest, IsReadAsItWasWritten) {
  RollLedger ledger = RollLedger().with_entry();
  const std::string id = ledger.id;
  EXPECT_NE(id, RollLedger().with_entry().id);
  for (std::size_t i = 0; i < RollLedger::recent_max + 5; ++i) {
    const auto read = RollLedger::parse(ledger.to_value());
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(*read, ledger);
    ledger = ledger.with_entry().without(member("n" + std::to_string(i)));
  }
  EXPECT_EQ(ledger.id, id);
  EXPECT_EQ(ledger.entered, RollLedger::recent_max + 6);
  EXPECT_EQ(ledger.left, RollLedger::recent_max + 5);
  EXPECT_EQ(ledger.recent.size(), RollLedger::recent_max);
  EXPECT_EQ(ledger.recent.back(), member("n104"));
}

TEST(RollLedgerTest, AnythingElseIsNone) {
  const std::string gone = R"({"node":"a","url":"http://a","instance":""})";
  const auto ledger = [](const std::string& id, const std::string& entered, const std::string& left,
                         const std::string& recent) {
    return R"({"id":)" + id + R"(,"entered":)" + entered + R"(,"left":)" + left + R"(,"recent":)" + recent +
           "}";
  };
  EXPECT_TRUE(RollLedger::parse(ledger("\"x\"", "2", "1", "[" + gone + "]")));
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), ledger("\"\"", "2", "1", "[]"),
        ledger("1", "2", "1", "[]"), ledger("\"x\"", "-1", "-2", "[]"), ledger("\"x\"", "2.5", "1", "[]"),
        ledger("\"x\"", "18446744073709551615", "1", "[]"), ledger("\"x\"", "1", "2", "[]"),
        ledger("\"x\"", "2", "0", "[" + gone + "]"), ledger("\"x\"", "2", "1", "[1]"),
        ledger("\"x\"", "2", "1", R"([{"node":"a\u001bb","url":"u","instance":"i"}])"),
        ledger("\"x\"", "2", "1", R"([{"node":"a:1","url":"u","instance":"i"}])"),
        ledger("\"x\"", "2", "1", "[]") + std::string(600'000, ' ')}) {
    EXPECT_FALSE(RollLedger::parse(bad)) << bad.substr(0, 100);
  }
}

TEST(RollPositionTest, NobodyLeftIsNoGap) {
  const Roll roll = roll_after({member("x")});
  EXPECT_THAT(gaps_since(position(roll), roll, place, cursors_of({member("a")})), IsEmpty());
  Roll later = roll;
  later.revision += 1000;
  EXPECT_THAT(gaps_since(position(roll), later, place, cursors_of({member("a")})), IsEmpty());
}

TEST(RollPositionTest, WhoLeftUnreadIsAGap) {
  const std::string before = position(roll_after({member("x")}));
  Roll now = roll_after({member("x"), member("y"), member("z")});
  EXPECT_THAT(gaps_since(before, now, place, cursors_of({member("y")})), ElementsAre(HasSubstr("'z'")));
  EXPECT_THAT(gaps_since(before, now, place, cursors_of({member("y"), member("z")})), IsEmpty())
      << "their own gaps come once nobody is silent";
  EXPECT_THAT(gaps_since(position(now), now, place, {}), IsEmpty());
}

TEST(RollPositionTest, ACursorIsOneOfAnInstance) {
  const std::string before = position(roll_after({}));
  const Roll now = roll_after({member("x", 2)});
  EXPECT_THAT(gaps_since(before, now, place, cursors_of({member("x", 1)})), ElementsAre(HasSubstr("'x'")));
  tracker::Cursors unread;
  unread["x"];
  EXPECT_THAT(gaps_since(before, now, place, unread), ElementsAre(HasSubstr("'x'")));
}

TEST(RollPositionTest, WhoIsStillOnTheRollIsExpected) {
  const std::string before = position(roll_after({}));
  Roll now = roll_after({member("x", 2)});
  now.ledger = now.ledger.with_entry();
  now.entries.push_back({.member = {"x", "http://elsewhere:7420", member("x", 2).instance}, .endpoint = {}});
  EXPECT_THAT(gaps_since(before, now, place, {}), IsEmpty());
  now.entries[0].member.instance = member("x", 1).instance;
  EXPECT_THAT(gaps_since(before, now, place, {}), ElementsAre(HasSubstr("'x'")));
}

TEST(RollPositionTest, MoreThanAreKeptByNameAreAGap) {
  const std::vector<RollMember> gone(RollLedger::recent_max + 2, member("x"));
  const Roll now = roll_after(gone);
  const auto cursors = cursors_of({member("x")});
  EXPECT_THAT(gaps_since(position(roll_after({member("x")})), now, place, cursors),
              ElementsAre(HasSubstr("101 members")));
  EXPECT_THAT(gaps_since(position(roll_after({member("x"), member("x")})), now, place, cursors), IsEmpty());
}

TEST(RollPositionTest, AnotherEtcdIsAGap) {
  const Roll roll = roll_after({member("x"), member("y")});
  const auto cursors = cursors_of({member("x"), member("y")});
  const auto expect_gap = [&](const Roll& now, const char* why) {
    EXPECT_THAT(gaps_since(position(roll), now, place, cursors), ElementsAre(HasSubstr(why)));
  };
  Roll other = roll;
  other.cluster_id = "78";
  expect_gap(other, "set up anew");
  other = roll;
  other.ledger.id = "another";
  expect_gap(other, "set up anew");
  other = roll;
  other.revision -= 1;
  expect_gap(other, "older state");
  other = roll_after({member("x")});
  expect_gap(other, "older state");
  EXPECT_THAT(gaps_since(position(roll), roll, {"spoor", "test2"}, cursors),
              ElementsAre(HasSubstr("never read before")));
}

TEST(RollPositionTest, WhatWasErasedByHandIsAGap) {
  Roll roll = roll_after({});
  for (const char* name : {"a", "b"}) {
    roll.ledger = roll.ledger.with_entry();
    roll.entries.push_back({.member = member(name), .endpoint = {}});
  }
  Roll now = roll;
  now.entries.pop_back();
  EXPECT_THAT(gaps_since(position(roll), now, place, {}), ElementsAre(HasSubstr("by hand")));
  EXPECT_THAT(gaps_since(position(now), now, place, {}), IsEmpty());
}

TEST(RollPositionTest, OnlyTheFirstScanOfAllNeedsNoPosition) {
  const Roll roll = roll_after({member("x")});
  EXPECT_THAT(gaps_since("", roll, place, {}), IsEmpty()) << "it walks everything anyway";
  EXPECT_THAT(gaps_since("", roll, place, cursors_of({member("a")})),
              ElementsAre(HasSubstr("never read before")));
  for (const std::string bad : {"x", "[]", "{}", R"({"folder":1})"}) {
    EXPECT_THAT(gaps_since(bad, roll, place, {}), ElementsAre(HasSubstr("never read before"))) << bad;
  }
}

}  // namespace
}  // namespace spoor::peer
