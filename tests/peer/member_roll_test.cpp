#include "peer/member_roll.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spoor::peer {
namespace {

using std::chrono::hours;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;
using Urls = std::vector<std::string>;

constexpr base::WallTime noon{hours(24 * 20'000)};
constexpr hours forget_after{24};

// Everybody was asked by a scan that was stored.
tracker::Cursors cursors_of(const Urls& urls) {
  tracker::Cursors cursors;
  for (const std::string& url : urls) cursors[url] = {};
  return cursors;
}
const tracker::Cursors all_stored = cursors_of({"a", "b", "c"});

SourceAnswer answer(Urls urls, std::string problem = {}) {
  return {.source = "dns x",
          .urls = std::move(urls),
          .problem = std::move(problem),
          .forget_after = forget_after};
}

MemberRoll after(const MemberRoll& before, const std::vector<SourceAnswer>& answers, base::WallTime now,
                 const tracker::Cursors& stored = all_stored, const RollRules& rules = {}) {
  return update_roll(before, answers, now, stored, rules);
}

MemberRoll roll_of(std::set<std::string> listed, std::map<std::string, base::WallTime> lingering = {}) {
  return {{{"dns x", {std::move(listed), std::move(lingering)}}}};
}

TEST(MemberRollTest, WhoIsListedIsOnTheRoll) {
  EXPECT_EQ(after({}, {answer({"b", "a"})}, noon), roll_of({"a", "b"}));
}

TEST(MemberRollTest, WhoIsNoLongerListedLingers) {
  EXPECT_EQ(after(roll_of({"a", "b"}), {answer({"b"})}, noon), roll_of({"b"}, {{"a", noon}}));
  EXPECT_EQ(after(roll_of({"a"}), {answer({})}, noon), roll_of({}, {{"a", noon}}));
}

TEST(MemberRollTest, WhoLingersIsForgottenAfterAWhile) {
  const auto before = roll_of({}, {{"a", noon}});
  EXPECT_EQ(after(before, {answer({})}, noon + hours(24) - std::chrono::nanoseconds(1)), before);
  EXPECT_EQ(after(before, {answer({})}, noon + hours(24)), roll_of({}));
}

// A scan a month is no reason to forget at once who was listed in the one before.
TEST(MemberRollTest, WhoWasListedLongAgoLingersFromTheFirstAnswerWithoutIt) {
  const auto roll = after(after({}, {answer({"a"})}, noon), {answer({})}, noon + hours(24 * 30));
  EXPECT_EQ(roll, roll_of({}, {{"a", noon + hours(24 * 30)}}));
}

TEST(MemberRollTest, WhoIsBackDoesNotLinger) {
  EXPECT_EQ(after(roll_of({}, {{"a", noon}}), {answer({"a"})}, noon + hours(1)), roll_of({"a"}));
}

TEST(MemberRollTest, ASourceWithAProblemTakesNobodyOff) {
  const auto before = roll_of({"a"}, {{"b", noon}});
  EXPECT_EQ(after(before, {answer({}, "no answer in time")}, noon + hours(1000)), before);
  EXPECT_EQ(after(before, {answer({"c"}, "no answer in time")}, noon + hours(1000)),
            roll_of({"a", "c"}, {{"b", noon}}));
  EXPECT_EQ(after(before, {answer({"b"}, "no answer in time")}, noon), roll_of({"a", "b"}));
}

TEST(MemberRollTest, NobodyIsForgottenBeforeAScanWithItWasStored) {
  const auto before = roll_of({}, {{"a", noon}, {"b", noon}});
  const auto roll = after(before, {answer({})}, noon + hours(1000), cursors_of({"b"}));
  EXPECT_EQ(roll, roll_of({}, {{"a", noon}}));
}

TEST(MemberRollTest, TheNodesOwnUrlNeedsNoCursor) {
  const auto roll = after(roll_of({}, {{"a", noon}}), {answer({})}, noon + hours(24), {}, {.own_url = "a"});
  EXPECT_EQ(roll, roll_of({}));
}

TEST(MemberRollTest, AClockSetBackForgetsNobodyAndKeepsNobodyForYears) {
  const auto ahead = noon + hours(24 * 3650);
  const auto set_back = after(roll_of({}, {{"a", ahead}}), {answer({})}, noon);
  EXPECT_EQ(set_back, roll_of({}, {{"a", noon}}));
  EXPECT_EQ(after(set_back, {answer({})}, noon + hours(24)), roll_of({}));
}

TEST(MemberRollTest, ASourceThatIsNoLongerConfiguredListsNobody) {
  const auto before = roll_of({"a", "b"}, {{"c", noon}});
  EXPECT_EQ(after(before, {}, noon), MemberRoll());
  const auto unread = after(before, {}, noon, cursors_of({"b", "c"}));
  EXPECT_EQ(unread, roll_of({}, {{"a", noon}}));
  EXPECT_EQ(after(unread, {}, noon, all_stored), MemberRoll());
}

TEST(MemberRollTest, SourcesAreApart) {
  const MemberRoll before{{{"dns x", {{"a"}, {}}}, {"dns y", {{"a", "b"}, {}}}}};
  auto x = answer({});
  auto y = answer({"a"});
  y.source = "dns y";
  const auto roll = after(before, {x, y}, noon);
  EXPECT_THAT(roll.sources.at("dns x").lingering, ElementsAre(Key("a")));
  EXPECT_THAT(roll.sources.at("dns y").listed, ElementsAre("a"));
  EXPECT_THAT(roll.sources.at("dns y").lingering, ElementsAre(Key("b")));
}

TEST(MemberRollTest, OverTheBoundThoseGoFirstThatLingerForTheLongest) {
  const auto before =
      roll_of({}, {{"a", noon}, {"b", noon - hours(2)}, {"c", noon - hours(1)}, {"d", noon - hours(3)}});
  const auto roll = after(before, {answer({})}, noon, all_stored, {.own_url = {}, .kept_max = 2});
  EXPECT_THAT(roll.sources.at("dns x").lingering,
              UnorderedElementsAre(Pair("a", noon), Pair("d", noon - hours(3))))
      << "d was never in a stored scan";
}

// A name that has other addresses each time, and never a whole answer.
TEST(MemberRollTest, WhatASourceWithAProblemKeepsIsBounded) {
  MemberRoll roll;
  tracker::Cursors stored;
  for (int i = 0; i < 20; ++i) {
    const std::string url = "url" + std::to_string(i);
    roll = after(roll, {answer({url}, "it has more than 1 addresses")}, noon + hours(i), stored,
                 {.own_url = {}, .kept_max = 2});
    stored[url] = {};
  }
  EXPECT_EQ(roll.sources.at("dns x").listed.size(), 3U);
  EXPECT_EQ(roll.sources.at("dns x").lingering.size(), 2U);
}

// Whatever sources, clock and scans do: who was ever listed is asked until it has a cursor, and for as long
// as its source said nothing else for forget_after.
TEST(MemberRollTest, NobodyIsLostWhateverHappens) {
  SPOOR_RANDOM(random);
  for (int round = 0; round < 300; ++round) {
    MemberRoll roll;
    tracker::Cursors stored;
    std::map<std::string, base::WallTime> unlisted_since;  // of those that must be asked
    auto now = noon;
    for (int step = 0; step < 60; ++step) {
      now += hours(random.below(12));
      Urls urls;
      for (const char* url : {"a", "b", "c", "d"}) {
        if (random.one_in(2)) urls.emplace_back(url);
      }
      const bool is_whole = !random.one_in(4);
      roll = after(roll, {answer(urls, is_whole ? "" : "no answer in time")}, now, stored);
      for (auto& [url, since] : unlisted_since) {
        if (is_whole && since == base::WallTime::max()) since = now;
      }
      for (const std::string& url : urls) unlisted_since[url] = base::WallTime::max();
      const auto& source = roll.sources.at("dns x");
      for (const auto& [url, since] : unlisted_since) {
        const bool is_asked = source.listed.contains(url) || source.lingering.contains(url);
        const bool may_be_gone =
            stored.contains(url) && since != base::WallTime::max() && now - since >= forget_after;
        ASSERT_TRUE(is_asked || may_be_gone) << url << " in step " << step;
      }
      std::erase_if(unlisted_since, [&](const auto& member) {
        return !source.listed.contains(member.first) && !source.lingering.contains(member.first);
      });
      if (random.one_in(3)) {
        for (const auto& url : source.listed) stored[url] = {};
        for (const auto& [url, since] : source.lingering) stored[url] = {};
      }
    }
  }
}

}  // namespace
}  // namespace spoor::peer
