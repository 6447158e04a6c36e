#include "peer/membership/membership.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace spoor::peer {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

base::Endpoint endpoint(const std::string& url) { return base::parse_endpoint(url).value(); }

std::vector<std::string> urls(const std::vector<base::Endpoint>& endpoints) {
  std::vector<std::string> urls;
  for (const base::Endpoint& each : endpoints) urls.push_back(each.to_string());
  return urls;
}

const base::Endpoint own = endpoint("unix:/own.sock");

TEST(MembershipTest, AllSources_AreMergedWithoutDuplicates) {
  const std::vector<base::Endpoint> named{endpoint("http://b:1"), own, endpoint("http://a:1")};
  const std::vector<SourceListing> listings{{.source = "dns x", .listed = {"http://a:1", "http://c:1"}},
                                            {.source = "etcd", .listed = {"http://c:1", "http://d:1"}}};
  const auto members = merge_members(own, named, listings);
  EXPECT_THAT(urls(members.endpoints),
              ElementsAre("unix:/own.sock", "http://b:1", "http://a:1", "http://c:1", "http://d:1"));
  EXPECT_THAT(members.named_urls, ElementsAre("http://a:1", "http://b:1", "unix:/own.sock"));
  EXPECT_THAT(members.unknown_sources, IsEmpty());
}

TEST(MembershipTest, NoSource_IsTheOwnEndpointOrNone) {
  EXPECT_THAT(urls(merge_members(own, {}, {}).endpoints), ElementsAre("unix:/own.sock"));
  EXPECT_THAT(merge_members({}, {}, {}).endpoints, IsEmpty());
}

TEST(MembershipTest, ProblemOfASource_IsUnknownAndItsMembersAreListed) {
  const std::vector<SourceListing> listings{
      {.source = "dns x", .listed = {"http://a:1"}, .problem = "no answer in time"}};
  const auto members = merge_members(own, {}, listings);
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://a:1"));
  EXPECT_THAT(members.unknown_sources, ElementsAre("dns x: no answer in time"));
}

TEST(MembershipTest, InvalidUrl_IsAProblemOfItsSource) {
  const std::vector<SourceListing> listings{{.source = "etcd", .listed = {"http://[a:80", "http://fine:80"}}};
  const auto members = merge_members(own, {}, listings);
  EXPECT_THAT(urls(members.endpoints), ElementsAre("unix:/own.sock", "http://fine:80"));
  EXPECT_THAT(members.unknown_sources, ElementsAre(StartsWith("etcd: ")));
}

TEST(MembershipTest, MemberNotAlive_IsRequestedAfterAllOthersButTheOwnOne) {
  const std::vector<base::Endpoint> named{endpoint("http://a:1")};
  const std::vector<SourceListing> listings{{.source = "dns x", .listed = {"http://b:1", "http://c:1"}},
                                            {.source = "etcd",
                                             .listed = {"http://d:1"},
                                             .not_alive = {"http://a:1", "http://b:1", "unix:/own.sock"}}};
  EXPECT_THAT(urls(merge_members(own, named, listings).endpoints),
              ElementsAre("unix:/own.sock", "http://c:1", "http://d:1", "http://a:1", "http://b:1"));
}

TEST(MembershipTest, MemberNotAlive_IsOneThatNoOtherSourceLists) {
  const std::vector<base::Endpoint> named{endpoint("http://a:1")};
  const std::vector<SourceListing> listings{
      {.source = "dns x", .listed = {"http://b:1"}},
      {.source = "etcd",
       .listed = {"http://a:1", "http://b:1", "http://c:1", "http://d:1"},
       .not_alive = {"http://a:1", "http://b:1", "http://c:1"}}};
  EXPECT_THAT(merge_members(own, named, listings).not_alive, ElementsAre("http://c:1"));
}

TEST(MembershipTest, HomesOfSeveralSources_AreMergedByName) {
  const std::vector<SourceListing> listings{
      {.source = "etcd", .listed = {}, .homes = {{"a", {"http://a:1"}}, {"b", {"http://b:1"}}}},
      {.source = "other", .listed = {}, .homes = {{"a", {"http://a:2"}}}}};
  EXPECT_THAT(
      merge_members(own, {}, listings).listed_homes,
      ElementsAre(Pair("a", ElementsAre("http://a:1", "http://a:2")), Pair("b", ElementsAre("http://b:1"))));
}

}  // namespace
}  // namespace spoor::peer
