#include "peer/membership/last_known_members.h"

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

SourceListing answer(Urls urls, std::string problem = {}, Urls departed = {}) {
  return {.source = "dns x",
          .listed = std::move(urls),
          .departed = std::move(departed),
          .problem = std::move(problem),
          .forget_after = forget_after};
}

LastKnownMembers after(const LastKnownMembers& before, const std::vector<SourceListing>& answers,
                       const LastKnownRules& rules = {}) {
  return update_last_known_members(before, answers, rules);
}

LastKnownMembers registry_of(std::set<std::string> listed, std::map<std::string, milliseconds> departed = {},
                             std::optional<base::WallTime> asked_at = {}) {
  return {{{"dns x", {std::move(listed), std::move(departed)}}}, asked_at};
}

AddressStates all_of(const Urls& urls, AddressState state) {
  AddressStates states;
  for (const std::string& url : urls) states[url] = state;
  return states;
}
AddressStates silent(const Urls& urls) { return all_of(urls, AddressState::silent); }
AddressStates answering(const Urls& urls) { return all_of(urls, AddressState::answered); }

// After a whole answer of the source that lists nobody.
LastKnownMembers settled(const LastKnownMembers& before, const AddressStates& asked, base::WallTime now,
                         const tracker::Cursors& stored = all_stored, const LastKnownRules& rules = {}) {
  return apply_responses(before, std::vector{answer({})}, asked, now, stored, rules);
}

TEST(LastKnownMembersTest, ListedMember_IsAdded) {
  EXPECT_EQ(after({}, {answer({"b", "a"})}), registry_of({"a", "b"}));
}

TEST(LastKnownMembersTest, MemberNoLongerListed_IsDeparted) {
  EXPECT_EQ(after(registry_of({"a", "b"}, {}, noon), {answer({"b"})}),
            registry_of({"b"}, {{"a", 0ms}}, noon));
  EXPECT_EQ(after(registry_of({"a"}), {answer({})}), registry_of({}, {{"a", 0ms}}));
}

TEST(LastKnownMembersTest, DepartedMemberListedAgain_IsListed) {
  EXPECT_EQ(after(registry_of({}, {{"a", 5ms}}), {answer({"a"})}), registry_of({"a"}));
}

TEST(LastKnownMembersTest, SourceReportsDeparted_IsDepartedAtOnce) {
  const auto last_known = after(registry_of({"a"}, {{"b", 5ms}}), {answer({"c"}, "", {"a", "b", "c"})});
  EXPECT_EQ(last_known, registry_of({"c"}, {{"a", 0ms}, {"b", 5ms}})) << "whoever is listed too is listed";
  EXPECT_EQ(after(registry_of({"a", "b"}), {answer({}, "one address is odd", {"a"})}),
            registry_of({"b"}, {{"a", 0ms}}));
}

// However long that was: nobody is forgotten before he was asked.
TEST(LastKnownMembersTest, SourceAnswer_EvictsNoMember) {
  const auto before = registry_of({"d"}, {{"a", hours(1000)}, {"b", 0ms}, {"c", 0ms}}, noon);
  auto at_once = answer({});
  at_once.forget_after = milliseconds(0);
  const auto expected = registry_of({}, {{"a", hours(1000)}, {"b", 0ms}, {"c", 0ms}, {"d", 0ms}}, noon);
  EXPECT_EQ(after(before, {at_once}, {.own_url = {}, .kept_max = 1}), expected);
  EXPECT_EQ(after(before, {}), expected) << "nor is anybody of a source that is no longer configured";
}

TEST(LastKnownMembersTest, SilentMember_IsEvictedAfterForgetAfter) {
  auto last_known = registry_of({}, {{"a", 0ms}}, noon);
  for (int hour = 1; hour < 24; ++hour) {
    last_known = settled(last_known, silent({"a"}), noon + hours(hour));
    EXPECT_EQ(last_known, registry_of({}, {{"a", hours(hour)}}, noon + hours(hour)));
  }
  EXPECT_EQ(settled(last_known, silent({"a"}), noon + hours(24)), registry_of({}, {}, noon + hours(24)));
}

// As a pod that is not ready: its name does not list it, and it goes on acknowledging marks.
TEST(LastKnownMembersTest, MemberEvictedBySource_IsEvictedAtOnceIfSilent) {
  SourceListing evicted = answer({});
  evicted.evicted = {"a"};
  const auto settle = [&](const AddressStates& asked) {
    return apply_responses(registry_of({}, {{"a", 0ms}, {"b", 0ms}}, noon), std::vector{evicted}, asked,
                           noon + 1s, all_stored, {});
  };
  EXPECT_THAT(settle(silent({"a", "b"})).sources.at("dns x").departed, ElementsAre(Key("b")));
  EXPECT_THAT(settle(answering({"a", "b"})).sources.at("dns x").departed, ElementsAre(Key("a"), Key("b")));
}

TEST(LastKnownMembersTest, RespondingMember_IsNeverEvicted) {
  auto last_known = registry_of({}, {{"a", hours(23)}}, noon);
  for (int day = 1; day < 100; ++day) {
    const auto now = noon + hours(24 * day);
    last_known = settled(after(last_known, {answer({})}), answering({"a"}), now);
    ASSERT_EQ(last_known, registry_of({}, {{"a", 0ms}}, now)) << "day " << day;
  }
}

TEST(LastKnownMembersTest, Response_ResetsSilence) {
  auto last_known = settled(registry_of({}, {{"a", hours(23)}}, noon), answering({"a"}), noon + hours(1));
  last_known = settled(last_known, silent({"a"}), noon + hours(3));
  EXPECT_EQ(last_known, registry_of({}, {{"a", hours(2)}}, noon + hours(3)));
}

TEST(LastKnownMembersTest, MemberNotAsked_KeepsItsSilence) {
  const auto before = registry_of({}, {{"a", hours(1000)}}, noon);
  EXPECT_EQ(settled(before, {}, noon + hours(1)), registry_of({}, {{"a", hours(1000)}}, noon + hours(1)));
}

// Its node is a member at another address.
TEST(LastKnownMembersTest, AddressItsNodeLeft_IsEvictedAtOnce) {
  const auto before = registry_of({"b"}, {{"a", 0ms}}, noon);
  const AddressStates asked{{"a", AddressState::left}, {"b", AddressState::answered}};
  EXPECT_EQ(settled(before, asked, noon), registry_of({"b"}, {}, noon));
}

// A machine that started in 1970, or with its clock years ahead, counts as a quarter.
TEST(LastKnownMembersTest, WrongClock_EvictsNoMember) {
  const base::WallTime in_1970{};
  const auto far_ahead = noon + hours(24 * 3650);
  const auto before = registry_of({}, {{"a", 0ms}}, noon);
  auto last_known = settled(before, silent({"a"}), in_1970);
  EXPECT_EQ(last_known, registry_of({}, {{"a", 0ms}}, in_1970));
  last_known = settled(last_known, silent({"a"}), noon);
  EXPECT_EQ(last_known, registry_of({}, {{"a", hours(6)}}, noon));
  last_known = settled(last_known, silent({"a"}), far_ahead);
  EXPECT_EQ(last_known, registry_of({}, {{"a", hours(12)}}, far_ahead));
  EXPECT_EQ(settled(last_known, silent({"a"}), noon), registry_of({}, {{"a", hours(12)}}, noon));
}

TEST(LastKnownMembersTest, FirstTimeAsked_CountsNoEarlierSilence) {
  EXPECT_EQ(settled(registry_of({}, {{"a", 0ms}}), silent({"a"}), noon), registry_of({}, {{"a", 0ms}}, noon));
}

TEST(LastKnownMembersTest, ForgetAfterOfTwoMilliseconds_SilenceAddsUp) {
  auto soon = answer({});
  soon.forget_after = milliseconds(2);
  auto last_known = registry_of({}, {{"a", 0ms}}, noon);
  last_known = apply_responses(last_known, std::vector{soon}, silent({"a"}), noon + hours(1), all_stored, {});
  EXPECT_EQ(last_known, registry_of({}, {{"a", 1ms}}, noon + hours(1)));
  last_known = apply_responses(last_known, std::vector{soon}, silent({"a"}), noon + hours(2), all_stored, {});
  EXPECT_EQ(last_known, registry_of({}, {}, noon + hours(2)));
}

TEST(LastKnownMembersTest, ForgetAfterZero_OnlySilentMemberIsEvictedAtOnce) {
  auto at_once = answer({});
  at_once.forget_after = milliseconds(0);
  const auto before = registry_of({}, {{"a", 0ms}, {"b", 0ms}}, noon);
  const AddressStates asked{{"a", AddressState::silent}, {"b", AddressState::answered}};
  EXPECT_EQ(apply_responses(before, std::vector{at_once}, asked, noon, all_stored, {}),
            registry_of({}, {{"b", 0ms}}, noon));
}

TEST(LastKnownMembersTest, SourceError_EvictsNoMember) {
  const auto before = registry_of({"a"}, {{"b", 0ms}}, noon);
  const auto problem = answer({}, "no answer in time");
  EXPECT_EQ(after(before, {problem}), before);
  EXPECT_EQ(after(before, {answer({"c"}, "no answer in time")}), registry_of({"a", "c"}, {{"b", 0ms}}, noon));
  EXPECT_EQ(after(before, {answer({"b"}, "no answer in time")}), registry_of({"a", "b"}, {}, noon));
  const auto overdue = registry_of({"a"}, {{"b", hours(1000)}}, noon);
  EXPECT_EQ(apply_responses(overdue, std::vector{problem}, silent({"a", "b"}), noon, all_stored, {}),
            overdue);
}

TEST(LastKnownMembersTest, MemberNotInStoredScan_IsNotEvicted) {
  const auto before = registry_of({}, {{"a", hours(30)}, {"b", hours(30)}}, noon);
  EXPECT_EQ(settled(before, silent({"a", "b"}), noon, cursors_of({"b"})),
            registry_of({}, {{"a", hours(30)}}, noon));
}

TEST(LastKnownMembersTest, OwnUrl_IsEvictedWithoutCursor) {
  const auto before = registry_of({}, {{"a", hours(24)}}, noon);
  EXPECT_EQ(settled(before, silent({"a"}), noon, {}, {.own_url = "a"}), registry_of({}, {}, noon));
}

TEST(LastKnownMembersTest, SourceNoLongerConfigured_SilentMemberIsEvicted) {
  const auto left = after(registry_of({"a", "b"}, {{"c", 0ms}}, noon), {});
  EXPECT_EQ(left, registry_of({}, {{"a", 0ms}, {"b", 0ms}, {"c", 0ms}}, noon));
  const AddressStates asked{
      {"a", AddressState::silent}, {"b", AddressState::answered}, {"c", AddressState::silent}};
  const auto last_known = apply_responses(left, {}, asked, noon, cursors_of({"b", "c"}), {});
  EXPECT_EQ(last_known, registry_of({}, {{"a", 0ms}, {"b", 0ms}}, noon))
      << "no scan with a was stored; b answers";
  EXPECT_EQ(apply_responses(last_known, {}, silent({"a", "b"}), noon, all_stored, {}),
            (LastKnownMembers{{}, noon}));
}

TEST(LastKnownMembersTest, TwoSources_AreTrackedSeparately) {
  const LastKnownMembers before{{{"dns x", {{"a"}, {}}}, {"dns y", {{"a", "b"}, {}}}}, noon};
  auto x = answer({});
  auto y = answer({"a"});
  y.source = "dns y";
  y.forget_after = hours(1);
  const auto last_known = after(before, {x, y});
  EXPECT_THAT(last_known.sources.at("dns x").departed, ElementsAre(Key("a")));
  EXPECT_THAT(last_known.sources.at("dns y").listed, ElementsAre("a"));
  EXPECT_THAT(last_known.sources.at("dns y").departed, ElementsAre(Key("b")));
  const auto late =
      apply_responses(last_known, std::vector{x, y}, silent({"a", "b"}), noon + hours(1), all_stored, {});
  EXPECT_THAT(late.sources.at("dns x").departed, ElementsAre(Pair("a", hours(1))));
  EXPECT_THAT(late.sources.at("dns y").departed, ElementsAre(Pair("b", minutes(15))));
}

TEST(LastKnownMembersTest, MembersOverLimit_LongestSilentIsEvictedFirst) {
  const auto before =
      registry_of({}, {{"a", 0ms}, {"b", hours(2)}, {"c", hours(1)}, {"d", hours(3)}, {"e", 0ms}}, noon);
  auto asked = silent({"a", "b", "c", "d"});
  asked["e"] = AddressState::answered;
  const auto last_known =
      settled(before, asked, noon, cursors_of({"a", "b", "c", "e"}), {.own_url = {}, .kept_max = 3});
  EXPECT_THAT(last_known.sources.at("dns x").departed,
              ElementsAre(Pair("a", 0ms), Pair("d", hours(3)), Pair("e", 0ms)))
      << "d was never in a stored scan, e answers";
}

// A name that has other addresses each time, and never a whole answer.
TEST(LastKnownMembersTest, SourceError_KeptMembersAreBounded) {
  const LastKnownRules rules{.own_url = {}, .kept_max = 2};
  LastKnownMembers last_known;
  tracker::Cursors stored;
  for (int i = 0; i < 20; ++i) {
    const std::string url = "url" + std::to_string(i);
    const std::vector answers{answer({url}, "it has more than 1 addresses")};
    last_known = after(last_known, answers, rules);
    AddressStates asked;
    for (const auto& [silent_url, silence] : last_known.sources.at("dns x").departed)
      asked[silent_url] = AddressState::silent;
    last_known = apply_responses(last_known, answers, asked, noon + hours(i), stored, rules);
    stored[url] = {};
  }
  EXPECT_EQ(last_known.sources.at("dns x").listed.size(), 3U);
  EXPECT_EQ(last_known.sources.at("dns x").departed.size(), 2U);
}

// Whatever sources, clock and scans do: who was ever listed is asked until a stored scan has a cursor for it,
// and for as long as it was not silent in four settled scans on end, the last of them this one.
TEST(LastKnownMembersTest, RandomEvents_NoMemberIsEvictedTooEarly) {
  SPOOR_RANDOM(random);
  int forgotten = 0;
  for (int round = 0; round < 300; ++round) {
    LastKnownMembers last_known;
    tracker::Cursors stored;
    std::map<std::string, int> silent_scans;  // of those that must be asked
    for (int step = 0; step < 60; ++step) {
      const auto now = noon + hours(random.one_in(5) ? random.below(1'000'000) : std::uint64_t(step) * 12);
      Urls urls;
      for (const char* url : {"a", "b", "c", "d"}) {
        if (random.one_in(5)) urls.emplace_back(url);
      }
      const std::vector answers{answer(urls, random.one_in(4) ? "no answer in time" : "")};
      last_known = after(last_known, answers);
      for (const std::string& url : urls) silent_scans.try_emplace(url, 0);
      const bool is_settled = !random.one_in(10);
      AddressStates asked;
      for (auto& [url, scans] : silent_scans) {
        const auto& source = last_known.sources.at("dns x");
        ASSERT_TRUE(source.listed.contains(url) || source.departed.contains(url)) << url << ' ' << step;
        asked[url] = random.one_in(6) ? AddressState::answered : AddressState::silent;
        if (is_settled) scans = asked[url] == AddressState::answered ? 0 : scans + 1;
      }
      if (is_settled) last_known = apply_responses(last_known, answers, asked, now, stored, {});
      const auto& source = last_known.sources.at("dns x");
      for (const auto& [url, scans] : silent_scans) {
        const bool is_kept = source.listed.contains(url) || source.departed.contains(url);
        ASSERT_TRUE(is_kept || (stored.contains(url) && scans >= 4)) << url << " in step " << step;
        forgotten += is_kept ? 0 : 1;
      }
      std::erase_if(silent_scans, [&](const auto& member) {
        return !source.listed.contains(member.first) && !source.departed.contains(member.first);
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
