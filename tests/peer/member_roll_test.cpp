#include "peer/member_roll.h"

#include <gmock/gmock.h>

#include <optional>
#include <string>
#include <vector>

#include "tests/support/random.h"

namespace spoor::peer {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::minutes;
using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::Key;
using ::testing::Pair;
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

SourceAnswer answer(Urls urls, std::string problem = {}, Urls lingering = {}) {
  return {.source = "dns x",
          .urls = std::move(urls),
          .lingering = std::move(lingering),
          .problem = std::move(problem),
          .forget_after = forget_after};
}

MemberRoll after(const MemberRoll& before, const std::vector<SourceAnswer>& answers,
                 const RollRules& rules = {}) {
  return update_roll(before, answers, rules);
}

MemberRoll roll_of(std::set<std::string> listed, std::map<std::string, milliseconds> lingering = {},
                   std::optional<base::WallTime> asked_at = {}) {
  return {{{"dns x", {std::move(listed), std::move(lingering)}}}, asked_at};
}

AddressStates all_of(const Urls& urls, AddressState state) {
  AddressStates states;
  for (const std::string& url : urls) states[url] = state;
  return states;
}
AddressStates silent(const Urls& urls) { return all_of(urls, AddressState::silent); }
AddressStates answering(const Urls& urls) { return all_of(urls, AddressState::answered); }

// After a whole answer of the source that lists nobody.
MemberRoll settled(const MemberRoll& before, const AddressStates& asked, base::WallTime now,
                   const tracker::Cursors& stored = all_stored, const RollRules& rules = {}) {
  return settle_roll(before, std::vector{answer({})}, asked, now, stored, rules);
}

TEST(MemberRollTest, WhoIsListedIsOnTheRoll) {
  EXPECT_EQ(after({}, {answer({"b", "a"})}), roll_of({"a", "b"}));
}

TEST(MemberRollTest, WhoIsNoLongerListedLingers) {
  EXPECT_EQ(after(roll_of({"a", "b"}, {}, noon), {answer({"b"})}), roll_of({"b"}, {{"a", 0ms}}, noon));
  EXPECT_EQ(after(roll_of({"a"}), {answer({})}), roll_of({}, {{"a", 0ms}}));
}

TEST(MemberRollTest, WhoIsBackDoesNotLinger) {
  EXPECT_EQ(after(roll_of({}, {{"a", 5ms}}), {answer({"a"})}), roll_of({"a"}));
}

TEST(MemberRollTest, ASourceNamesWhoLingersAtOnce) {
  const auto roll = after(roll_of({"a"}, {{"b", 5ms}}), {answer({"c"}, "", {"a", "b", "c"})});
  EXPECT_EQ(roll, roll_of({"c"}, {{"a", 0ms}, {"b", 5ms}})) << "whoever is listed too is listed";
  EXPECT_EQ(after(roll_of({"a", "b"}), {answer({}, "one address is odd", {"a"})}),
            roll_of({"b"}, {{"a", 0ms}}));
}

// However long that was: nobody is forgotten before he was asked.
TEST(MemberRollTest, AnAnswerOfASourceForgetsNobody) {
  const auto before = roll_of({"d"}, {{"a", hours(1000)}, {"b", 0ms}, {"c", 0ms}}, noon);
  auto at_once = answer({});
  at_once.forget_after = milliseconds(0);
  const auto expected = roll_of({}, {{"a", hours(1000)}, {"b", 0ms}, {"c", 0ms}, {"d", 0ms}}, noon);
  EXPECT_EQ(after(before, {at_once}, {.own_url = {}, .kept_max = 1}), expected);
  EXPECT_EQ(after(before, {}), expected) << "nor is anybody of a source that is no longer configured";
}

TEST(MemberRollTest, SilenceAddsUpAndIsForgottenInTheEnd) {
  auto roll = roll_of({}, {{"a", 0ms}}, noon);
  for (int hour = 1; hour < 24; ++hour) {
    roll = settled(roll, silent({"a"}), noon + hours(hour));
    EXPECT_EQ(roll, roll_of({}, {{"a", hours(hour)}}, noon + hours(hour)));
  }
  EXPECT_EQ(settled(roll, silent({"a"}), noon + hours(24)), roll_of({}, {}, noon + hours(24)));
}

// As a pod that is not ready: its name does not list it, and it goes on acknowledging marks.
TEST(MemberRollTest, WhoWasStruckNeedNotBeSilentForLong) {
  SourceAnswer struck = answer({});
  struck.struck = {"a"};
  const auto settle = [&](const AddressStates& asked) {
    return settle_roll(roll_of({}, {{"a", 0ms}, {"b", 0ms}}, noon), std::vector{struck}, asked, noon + 1s,
                       all_stored, {});
  };
  EXPECT_THAT(settle(silent({"a", "b"})).sources.at("dns x").lingering, ElementsAre(Key("b")));
  EXPECT_THAT(settle(answering({"a", "b"})).sources.at("dns x").lingering, ElementsAre(Key("a"), Key("b")));
}

TEST(MemberRollTest, WhoAnswersIsNeverForgotten) {
  auto roll = roll_of({}, {{"a", hours(23)}}, noon);
  for (int day = 1; day < 100; ++day) {
    const auto now = noon + hours(24 * day);
    roll = settled(after(roll, {answer({})}), answering({"a"}), now);
    ASSERT_EQ(roll, roll_of({}, {{"a", 0ms}}, now)) << "day " << day;
  }
}

TEST(MemberRollTest, WhoAnsweredOnceBeginsAnew) {
  auto roll = settled(roll_of({}, {{"a", hours(23)}}, noon), answering({"a"}), noon + hours(1));
  roll = settled(roll, silent({"a"}), noon + hours(3));
  EXPECT_EQ(roll, roll_of({}, {{"a", hours(2)}}, noon + hours(3)));
}

TEST(MemberRollTest, WhoWasNotAskedIsLeftAsHeIs) {
  const auto before = roll_of({}, {{"a", hours(1000)}}, noon);
  EXPECT_EQ(settled(before, {}, noon + hours(1)), roll_of({}, {{"a", hours(1000)}}, noon + hours(1)));
}

// Its node is a member at another address.
TEST(MemberRollTest, AnAddressThatItsNodeLeftIsForgottenAtOnce) {
  const auto before = roll_of({"b"}, {{"a", 0ms}}, noon);
  const AddressStates asked{{"a", AddressState::left}, {"b", AddressState::answered}};
  EXPECT_EQ(settled(before, asked, noon), roll_of({"b"}, {}, noon));
}

// A machine that started in 1970, or with its clock years ahead, counts as a quarter.
TEST(MemberRollTest, OneWrongClockForgetsNobody) {
  const base::WallTime in_1970{};
  const auto far_ahead = noon + hours(24 * 3650);
  const auto before = roll_of({}, {{"a", 0ms}}, noon);
  auto roll = settled(before, silent({"a"}), in_1970);
  EXPECT_EQ(roll, roll_of({}, {{"a", 0ms}}, in_1970));
  roll = settled(roll, silent({"a"}), noon);
  EXPECT_EQ(roll, roll_of({}, {{"a", hours(6)}}, noon));
  roll = settled(roll, silent({"a"}), far_ahead);
  EXPECT_EQ(roll, roll_of({}, {{"a", hours(12)}}, far_ahead));
  EXPECT_EQ(settled(roll, silent({"a"}), noon), roll_of({}, {{"a", hours(12)}}, noon));
}

TEST(MemberRollTest, WhoeverWasNeverAskedBeforeWasNotSilentBefore) {
  EXPECT_EQ(settled(roll_of({}, {{"a", 0ms}}), silent({"a"}), noon), roll_of({}, {{"a", 0ms}}, noon));
}

TEST(MemberRollTest, TheShortestSilenceAddsUpToo) {
  auto soon = answer({});
  soon.forget_after = milliseconds(2);
  auto roll = roll_of({}, {{"a", 0ms}}, noon);
  roll = settle_roll(roll, std::vector{soon}, silent({"a"}), noon + hours(1), all_stored, {});
  EXPECT_EQ(roll, roll_of({}, {{"a", 1ms}}, noon + hours(1)));
  roll = settle_roll(roll, std::vector{soon}, silent({"a"}), noon + hours(2), all_stored, {});
  EXPECT_EQ(roll, roll_of({}, {}, noon + hours(2)));
}

TEST(MemberRollTest, WithoutPatienceWhoIsSilentIsForgottenAtOnceAndWhoAnswersIsNot) {
  auto at_once = answer({});
  at_once.forget_after = milliseconds(0);
  const auto before = roll_of({}, {{"a", 0ms}, {"b", 0ms}}, noon);
  const AddressStates asked{{"a", AddressState::silent}, {"b", AddressState::answered}};
  EXPECT_EQ(settle_roll(before, std::vector{at_once}, asked, noon, all_stored, {}),
            roll_of({}, {{"b", 0ms}}, noon));
}

TEST(MemberRollTest, ASourceWithAProblemTakesNobodyOff) {
  const auto before = roll_of({"a"}, {{"b", 0ms}}, noon);
  const auto problem = answer({}, "no answer in time");
  EXPECT_EQ(after(before, {problem}), before);
  EXPECT_EQ(after(before, {answer({"c"}, "no answer in time")}), roll_of({"a", "c"}, {{"b", 0ms}}, noon));
  EXPECT_EQ(after(before, {answer({"b"}, "no answer in time")}), roll_of({"a", "b"}, {}, noon));
  const auto overdue = roll_of({"a"}, {{"b", hours(1000)}}, noon);
  EXPECT_EQ(settle_roll(overdue, std::vector{problem}, silent({"a", "b"}), noon, all_stored, {}), overdue);
}

TEST(MemberRollTest, NobodyIsForgottenBeforeAScanWithItWasStored) {
  const auto before = roll_of({}, {{"a", hours(30)}, {"b", hours(30)}}, noon);
  EXPECT_EQ(settled(before, silent({"a", "b"}), noon, cursors_of({"b"})),
            roll_of({}, {{"a", hours(30)}}, noon));
}

TEST(MemberRollTest, TheNodesOwnUrlNeedsNoCursor) {
  const auto before = roll_of({}, {{"a", hours(24)}}, noon);
  EXPECT_EQ(settled(before, silent({"a"}), noon, {}, {.own_url = "a"}), roll_of({}, {}, noon));
}

TEST(MemberRollTest, WhoeverIsSilentOfASourceThatIsNoLongerConfiguredIsForgotten) {
  const auto left = after(roll_of({"a", "b"}, {{"c", 0ms}}, noon), {});
  EXPECT_EQ(left, roll_of({}, {{"a", 0ms}, {"b", 0ms}, {"c", 0ms}}, noon));
  const AddressStates asked{
      {"a", AddressState::silent}, {"b", AddressState::answered}, {"c", AddressState::silent}};
  const auto roll = settle_roll(left, {}, asked, noon, cursors_of({"b", "c"}), {});
  EXPECT_EQ(roll, roll_of({}, {{"a", 0ms}, {"b", 0ms}}, noon)) << "no scan with a was stored; b answers";
  EXPECT_EQ(settle_roll(roll, {}, silent({"a", "b"}), noon, all_stored, {}), (MemberRoll{{}, noon}));
}

TEST(MemberRollTest, SourcesAreApart) {
  const MemberRoll before{{{"dns x", {{"a"}, {}}}, {"dns y", {{"a", "b"}, {}}}}, noon};
  auto x = answer({});
  auto y = answer({"a"});
  y.source = "dns y";
  y.forget_after = hours(1);
  const auto roll = after(before, {x, y});
  EXPECT_THAT(roll.sources.at("dns x").lingering, ElementsAre(Key("a")));
  EXPECT_THAT(roll.sources.at("dns y").listed, ElementsAre("a"));
  EXPECT_THAT(roll.sources.at("dns y").lingering, ElementsAre(Key("b")));
  const auto late = settle_roll(roll, std::vector{x, y}, silent({"a", "b"}), noon + hours(1), all_stored, {});
  EXPECT_THAT(late.sources.at("dns x").lingering, ElementsAre(Pair("a", hours(1))));
  EXPECT_THAT(late.sources.at("dns y").lingering, ElementsAre(Pair("b", minutes(15))));
}

TEST(MemberRollTest, OverTheBoundThoseGoFirstThatWereSilentForTheLongest) {
  const auto before =
      roll_of({}, {{"a", 0ms}, {"b", hours(2)}, {"c", hours(1)}, {"d", hours(3)}, {"e", 0ms}}, noon);
  auto asked = silent({"a", "b", "c", "d"});
  asked["e"] = AddressState::answered;
  const auto roll =
      settled(before, asked, noon, cursors_of({"a", "b", "c", "e"}), {.own_url = {}, .kept_max = 3});
  EXPECT_THAT(roll.sources.at("dns x").lingering,
              ElementsAre(Pair("a", 0ms), Pair("d", hours(3)), Pair("e", 0ms)))
      << "d was never in a stored scan, e answers";
}

// A name that has other addresses each time, and never a whole answer.
TEST(MemberRollTest, WhatASourceWithAProblemKeepsIsBounded) {
  const RollRules rules{.own_url = {}, .kept_max = 2};
  MemberRoll roll;
  tracker::Cursors stored;
  for (int i = 0; i < 20; ++i) {
    const std::string url = "url" + std::to_string(i);
    const std::vector answers{answer({url}, "it has more than 1 addresses")};
    roll = after(roll, answers, rules);
    AddressStates asked;
    for (const auto& [silent_url, silence] : roll.sources.at("dns x").lingering)
      asked[silent_url] = AddressState::silent;
    roll = settle_roll(roll, answers, asked, noon + hours(i), stored, rules);
    stored[url] = {};
  }
  EXPECT_EQ(roll.sources.at("dns x").listed.size(), 3U);
  EXPECT_EQ(roll.sources.at("dns x").lingering.size(), 2U);
}

// Whatever sources, clock and scans do: who was ever listed is asked until a stored scan has a cursor for it,
// and for as long as it was not silent in four settled scans on end, the last of them this one.
TEST(MemberRollTest, NobodyIsLostWhateverHappens) {
  SPOOR_RANDOM(random);
  int forgotten = 0;
  for (int round = 0; round < 300; ++round) {
    MemberRoll roll;
    tracker::Cursors stored;
    std::map<std::string, int> silent_scans;  // of those that must be asked
    for (int step = 0; step < 60; ++step) {
      const auto now = noon + hours(random.one_in(5) ? random.below(1'000'000) : std::uint64_t(step) * 12);
      Urls urls;
      for (const char* url : {"a", "b", "c", "d"}) {
        if (random.one_in(5)) urls.emplace_back(url);
      }
      const std::vector answers{answer(urls, random.one_in(4) ? "no answer in time" : "")};
      roll = after(roll, answers);
      for (const std::string& url : urls) silent_scans.try_emplace(url, 0);
      const bool is_settled = !random.one_in(10);
      AddressStates asked;
      for (auto& [url, scans] : silent_scans) {
        const auto& source = roll.sources.at("dns x");
        ASSERT_TRUE(source.listed.contains(url) || source.lingering.contains(url)) << url << ' ' << step;
        asked[url] = random.one_in(6) ? AddressState::answered : AddressState::silent;
        if (is_settled) scans = asked[url] == AddressState::answered ? 0 : scans + 1;
      }
      if (is_settled) roll = settle_roll(roll, answers, asked, now, stored, {});
      const auto& source = roll.sources.at("dns x");
      for (const auto& [url, scans] : silent_scans) {
        const bool is_kept = source.listed.contains(url) || source.lingering.contains(url);
        ASSERT_TRUE(is_kept || (stored.contains(url) && scans >= 4)) << url << " in step " << step;
        forgotten += is_kept ? 0 : 1;
      }
      std::erase_if(silent_scans, [&](const auto& member) {
        return !source.listed.contains(member.first) && !source.lingering.contains(member.first);
      });
      if (random.one_in(3)) {
        for (const auto& [url, state] : asked) stored[url] = {};
      }
    }
  }
  EXPECT_GT(forgotten, 0);
}

}  // namespace
}  // namespace spoor::peer
