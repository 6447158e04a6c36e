#include <gmock/gmock.h>

#include "peer/membership/etcd_members.h"

namespace spoor::peer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const EtcdLocation location{"spoor", "test"};

RegisteredMember member(const std::string& name, int instance = 1) {
  return {name, "http://" + name + ":7420",
          tracker::InstanceId{{static_cast<std::uint8_t>(instance)}}.to_string()};
}

// A roll on which nobody is any more, after these have left it.
Registry registry_after(const std::vector<RegisteredMember>& gone) {
  Registry last_known;
  last_known.log = last_known.log.with_entry().without(member("first"));
  last_known.log.id = "an id";
  for (const RegisteredMember& each : gone) last_known.log = last_known.log.with_entry().without(each);
  last_known.cluster_id = "77";
  last_known.revision = 100;
  return last_known;
}

std::string position(const Registry& last_known) {
  const tracker::Cursors none;
  return to_listing(last_known, location, {none, {}}, {}).checkpoint;
}

std::vector<std::string> gaps_since(std::string_view stored, const Registry& last_known,
                                    const EtcdLocation& place, const tracker::Cursors& cursors) {
  return to_listing(last_known, place, {cursors, std::string(stored)}, {}).gaps;
}

tracker::Cursors cursors_of(const std::vector<RegisteredMember>& members) {
  tracker::Cursors cursors;
  for (const RegisteredMember& each : members) {
    cursors[each.node] = {tracker::InstanceId::parse(each.instance).value(), {3}};
  }
  return cursors;
}

TEST(MembershipLogTest, WriteAndParse_KeepsAllFields) {
  MembershipLog log = MembershipLog().with_entry();
  const std::string id = log.id;
  EXPECT_NE(id, MembershipLog().with_entry().id);
  for (std::size_t i = 0; i < MembershipLog::recent_max + 5; ++i) {
    const auto read = MembershipLog::parse(log.to_value());
    ASSERT_TRUE(read) << i;
    EXPECT_EQ(*read, log);
    log = log.with_entry().without(member("n" + std::to_string(i)));
  }
  EXPECT_EQ(log.id, id);
  EXPECT_EQ(log.entered, MembershipLog::recent_max + 6);
  EXPECT_EQ(log.left, MembershipLog::recent_max + 5);
  EXPECT_EQ(log.recent.size(), MembershipLog::recent_max);
  EXPECT_EQ(log.recent.back(), member("n104"));
}

TEST(MembershipLogTest, InvalidText_IsRefused) {
  const std::string gone = R"({"node":"a","url":"http://a","instance":""})";
  const auto log = [](const std::string& id, const std::string& entered, const std::string& left,
                      const std::string& recent) {
    return R"({"id":)" + id + R"(,"entered":)" + entered + R"(,"left":)" + left + R"(,"recent":)" + recent +
           "}";
  };
  EXPECT_TRUE(MembershipLog::parse(log("\"x\"", "2", "1", "[" + gone + "]")));
  for (const std::string& bad :
       {std::string(), std::string("[]"), std::string("{}"), log("\"\"", "2", "1", "[]"),
        log("1", "2", "1", "[]"), log("\"x\"", "-1", "-2", "[]"), log("\"x\"", "2.5", "1", "[]"),
        log("\"x\"", "18446744073709551615", "1", "[]"), log("\"x\"", "1", "2", "[]"),
        log("\"x\"", "2", "0", "[" + gone + "]"), log("\"x\"", "2", "1", "[1]"),
        log("\"x\"", "2", "1", R"([{"node":"a\u001bb","url":"u","instance":"i"}])"),
        log("\"x\"", "2", "1", R"([{"node":"a:1","url":"u","instance":"i"}])"),
        log("\"x\"", "2", "1", "[]") + std::string(600'000, ' ')}) {
    EXPECT_FALSE(MembershipLog::parse(bad)) << bad.substr(0, 100);
  }
}

TEST(MembershipCheckpointTest, NoMemberLeft_IsNoGap) {
  const Registry last_known = registry_after({member("x")});
  EXPECT_THAT(gaps_since(position(last_known), last_known, location, cursors_of({member("a")})), IsEmpty());
  Registry later = last_known;
  later.revision += 1000;
  EXPECT_THAT(gaps_since(position(last_known), later, location, cursors_of({member("a")})), IsEmpty());
}

TEST(MembershipCheckpointTest, MemberLeftUnread_IsAGap) {
  const std::string before = position(registry_after({member("x")}));
  Registry now = registry_after({member("x"), member("y"), member("z")});
  EXPECT_THAT(gaps_since(before, now, location, cursors_of({member("y")})), ElementsAre(HasSubstr("'z'")));
  EXPECT_THAT(gaps_since(before, now, location, cursors_of({member("y"), member("z")})), IsEmpty())
      << "their own gaps come once nobody is silent";
  EXPECT_THAT(gaps_since(position(now), now, location, {}), IsEmpty());
}

TEST(MembershipCheckpointTest, CursorOfOtherInstance_IsAGap) {
  const std::string before = position(registry_after({}));
  const Registry now = registry_after({member("x", 2)});
  EXPECT_THAT(gaps_since(before, now, location, cursors_of({member("x", 1)})), ElementsAre(HasSubstr("'x'")));
  tracker::Cursors unread;
  unread["x"];
  EXPECT_THAT(gaps_since(before, now, location, unread), ElementsAre(HasSubstr("'x'")));
}

TEST(MembershipCheckpointTest, MemberStillInMembership_IsNoGap) {
  const std::string before = position(registry_after({}));
  Registry now = registry_after({member("x", 2)});
  now.log = now.log.with_entry();
  now.entries.push_back({.member = {"x", "http://elsewhere:7420", member("x", 2).instance}, .endpoint = {}});
  EXPECT_THAT(gaps_since(before, now, location, {}), IsEmpty());
  now.entries[0].member.instance = member("x", 1).instance;
  EXPECT_THAT(gaps_since(before, now, location, {}), ElementsAre(HasSubstr("'x'")));
}

TEST(MembershipCheckpointTest, MoreMembersLeftThanLogKeeps_IsAGap) {
  const std::vector<RegisteredMember> gone(MembershipLog::recent_max + 2, member("x"));
  const Registry now = registry_after(gone);
  const auto cursors = cursors_of({member("x")});
  EXPECT_THAT(gaps_since(position(registry_after({member("x")})), now, location, cursors),
              ElementsAre(HasSubstr("101 members")));
  EXPECT_THAT(gaps_since(position(registry_after({member("x"), member("x")})), now, location, cursors),
              IsEmpty());
}

TEST(MembershipCheckpointTest, OtherOrOlderEtcd_IsAGap) {
  const Registry last_known = registry_after({member("x"), member("y")});
  const auto cursors = cursors_of({member("x"), member("y")});
  const auto expect_gap = [&](const Registry& now, const char* why) {
    EXPECT_THAT(gaps_since(position(last_known), now, location, cursors), ElementsAre(HasSubstr(why)));
  };
  Registry other = last_known;
  other.cluster_id = "78";
  expect_gap(other, "set up anew");
  other = last_known;
  other.log.id = "another";
  expect_gap(other, "set up anew");
  other = last_known;
  other.revision -= 1;
  expect_gap(other, "older state");
  other = registry_after({member("x")});
  expect_gap(other, "older state");
  EXPECT_THAT(gaps_since(position(last_known), last_known, {"spoor", "test2"}, cursors),
              ElementsAre(HasSubstr("never read before")));
}

TEST(MembershipCheckpointTest, MemberErasedByHand_IsAGap) {
  Registry last_known = registry_after({});
  for (const char* name : {"a", "b"}) {
    last_known.log = last_known.log.with_entry();
    last_known.entries.push_back({.member = member(name), .endpoint = {}});
  }
  Registry now = last_known;
  now.entries.pop_back();
  EXPECT_THAT(gaps_since(position(last_known), now, location, {}), ElementsAre(HasSubstr("by hand")));
  EXPECT_THAT(gaps_since(position(now), now, location, {}), IsEmpty());
}

TEST(MembershipCheckpointTest, NoCheckpoint_IsAGapExceptInFirstScan) {
  const Registry last_known = registry_after({member("x")});
  EXPECT_THAT(gaps_since("", last_known, location, {}), IsEmpty()) << "it walks everything anyway";
  EXPECT_THAT(gaps_since("", last_known, location, cursors_of({member("a")})),
              ElementsAre(HasSubstr("never read before")));
  for (const std::string bad : {"x", "[]", "{}", R"({"folder":1})"}) {
    EXPECT_THAT(gaps_since(bad, last_known, location, {}), ElementsAre(HasSubstr("never read before")))
        << bad;
  }
}

}  // namespace
}  // namespace spoor::peer
