#include "peer/membership/etcd_registration.h"

#include <gmock/gmock.h>

#include "peer/membership/etcd_registry.h"
#include "tests/fakes/fake_etcd.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

const EtcdLocation location{"spoor", "test"};

class EtcdRegistrationTest : public testing::Test {
 protected:
  EtcdRegistration node(const std::string& name, const std::string& url, const std::string& instance = "i") {
    return EtcdRegistration(
        client_, clock_, {.location = location, .self = {name, url, instance}, .forget_after = minutes(60)});
  }

  std::vector<std::string> in_registry() {
    std::vector<std::string> urls;
    for (const auto& entry : read_registry(client_, location).value()) urls.push_back(entry.member.url);
    return urls;
  }

  // As the node with this URL reads it.
  SourceListing listing(const std::string& own_url = {}) {
    return to_listing(read_registry(client_, location).value(), own_url);
  }

  std::int64_t lease_of(const std::string& key) { return etcd_.keys.at(key).lease; }

  fakes::FakeEtcd etcd_;
  fakes::ManualClock clock_;
  EtcdClient client_{etcd_, clock_, {{"etcd", 2379, {}}}, {}};
  const std::string alive_a_ = "spoor/test/alive/a/http%3A%2F%2F10.0.0.1%3A7420";
  const std::string alive_b_ = "spoor/test/alive/b/http%3A%2F%2F10.0.0.2%3A7420";
  const std::string member_b_ = "spoor/test/members/b/http%3A%2F%2F10.0.0.2%3A7420";
  const std::string member_a_ = "spoor/test/members/a/http%3A%2F%2F10.0.0.1%3A7420";
  EtcdRegistration a_ = node("a", "http://10.0.0.1:7420");
  EtcdRegistration b_ = node("b", "http://10.0.0.2:7420");
};

TEST_F(EtcdRegistrationTest, Refresh_PutsMemberUnderALongLeaseAndAliveUnderAShortOne) {
  EXPECT_FALSE(a_.is_registered());
  ASSERT_TRUE(a_.refresh());
  EXPECT_TRUE(a_.is_registered());
  EXPECT_EQ(etcd_.ttls.at(lease_of(member_a_)), 3'600);
  EXPECT_EQ(etcd_.ttls.at(lease_of(alive_a_)), 30);
  ASSERT_EQ(a_.registry().size(), 1U);
  EXPECT_EQ(a_.registry()[0].member, (RegisteredMember{"a", "http://10.0.0.1:7420", "i"}));
  EXPECT_TRUE(a_.registry()[0].is_alive());
  EXPECT_TRUE(a_.is_self(a_.registry()[0]));
  EXPECT_THAT(etcd_.keys, testing::SizeIs(2));
}

TEST_F(EtcdRegistrationTest, NodeJoinsAndLeaves_MembershipKeepsItAsNotAlive) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(b_.refresh());
  EXPECT_EQ(b_.registry().size(), 2U);
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(a_.registry().size(), 2U);
  ASSERT_TRUE(b_.leave(client_));
  EXPECT_FALSE(b_.is_registered());
  ASSERT_TRUE(a_.refresh());
  ASSERT_EQ(a_.registry().size(), 2U) << "a stop is no eviction";
  EXPECT_FALSE(a_.registry()[1].is_alive());
}

TEST_F(EtcdRegistrationTest, LeaseExpired_IsReplacedByRefresh) {
  ASSERT_TRUE(a_.refresh());
  const auto first = lease_of(alive_a_);
  etcd_.expire(first);
  EXPECT_FALSE(etcd_.keys.contains(alive_a_));
  ASSERT_TRUE(a_.refresh());
  EXPECT_NE(lease_of(alive_a_), first);
  EXPECT_TRUE(a_.registry()[0].is_alive());
}

TEST_F(EtcdRegistrationTest, ErasedRegistrationKeys_AreRestored) {
  ASSERT_TRUE(a_.refresh());
  for (const auto& keys : {std::vector{member_a_}, {alive_a_}, {member_a_, alive_a_}}) {
    for (const std::string& key : keys) etcd_.erase(key);
    ASSERT_TRUE(a_.refresh());
    EXPECT_TRUE(etcd_.keys.contains(member_a_));
    EXPECT_NE(lease_of(alive_a_), 0);
    EXPECT_EQ(a_.registry().size(), 1U);
  }
}

TEST_F(EtcdRegistrationTest, EtcdOutage_KeepsLastReadMembership) {
  ASSERT_TRUE(b_.refresh());
  ASSERT_TRUE(a_.refresh());
  etcd_.down = {"etcd"};
  clock_.advance(seconds(29));
  EXPECT_FALSE(a_.refresh());
  EXPECT_EQ(a_.registry().size(), 2U);
  EXPECT_TRUE(a_.is_registered());
  clock_.advance(seconds(1));
  EXPECT_FALSE(a_.is_registered()) << "the lease may be over";
  etcd_.expire(lease_of(alive_a_));
  etcd_.down.clear();
  ASSERT_TRUE(a_.refresh());
  EXPECT_TRUE(a_.is_registered());
}

TEST_F(EtcdRegistrationTest, MembershipUnchanged_IsNotReadAgain) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(a_.refresh());
  etcd_.asked.clear();
  ASSERT_TRUE(a_.refresh());
  EXPECT_THAT(etcd_.asked,
              ElementsAre("etcd /v3/lease/keepalive", "etcd /v3/lease/keepalive", "etcd /v3/kv/range"));
}

TEST_F(EtcdRegistrationTest, DeadMember_IsForgottenByEtcdAndMayComeBack) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(b_.refresh());
  etcd_.expire(lease_of(alive_b_));
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(a_.registry().size(), 2U);
  etcd_.expire(lease_of(member_b_));
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(a_.registry().size(), 1U);
  ASSERT_TRUE(b_.refresh());
  EXPECT_EQ(in_registry().size(), 2U);
}

// As a pod whose disk is gone.
TEST_F(EtcdRegistrationTest, NewInstanceAtSameAddress_ReplacesTheEntryAndLeavesNoLeaseBehind) {
  ASSERT_TRUE(a_.refresh());
  const auto first = lease_of(member_a_);
  ASSERT_TRUE(a_.leave(client_));
  auto restarted = node("a", "http://10.0.0.1:7420", "j");
  ASSERT_TRUE(restarted.refresh());
  EXPECT_NE(lease_of(member_a_), first);
  EXPECT_THAT(etcd_.leases, testing::SizeIs(2));
  ASSERT_EQ(restarted.registry().size(), 1U);
  EXPECT_EQ(restarted.registry()[0].member.instance, "j");
  EXPECT_THAT(restarted.conflict(), IsEmpty());
}

TEST_F(EtcdRegistrationTest, Confirmed_OnlyOnceTheEntryIsThere) {
  ASSERT_TRUE(a_.refresh());
  const auto first = a_.confirmed_at();
  EXPECT_EQ(first, clock_.steady_now());
  clock_.advance(seconds(10));
  etcd_.erase(member_a_);
  etcd_.before = [this](const std::string& target) {
    if (target == "/v3/kv/txn") etcd_.down = {"etcd"};
  };
  etcd_.after = [this](HttpResponse& response) {
    if (!etcd_.down.empty()) response.status = 500;
  };
  EXPECT_FALSE(a_.refresh());
  EXPECT_EQ(a_.confirmed_at(), first);
  etcd_.before = [](const std::string&) {};
  etcd_.after = [](HttpResponse&) {};
  etcd_.down.clear();
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(a_.confirmed_at(), clock_.steady_now());
}

TEST_F(EtcdRegistrationTest, Removed_IsNoMemberWhateverRunRegisteredIt) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(b_.refresh());
  auto restarted = node("a", "http://10.0.0.1:7420");
  ASSERT_TRUE(restarted.remove(client_));
  EXPECT_THAT(in_registry(), ElementsAre("http://10.0.0.2:7420"));
}

// Those put it under no lease, and evict by themselves.
TEST_F(EtcdRegistrationTest, DeadMemberOfAnEarlierVersion_GetsALease) {
  const std::string value = R"({"instance":"i","node":"b","url":"http://10.0.0.2:7420"})";
  etcd_.put(member_b_, value);
  etcd_.put(alive_b_, value, 7);
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(lease_of(member_b_), 0) << "it runs";
  etcd_.expire(7);
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(etcd_.keys.at(member_b_).value, value);
  EXPECT_EQ(etcd_.ttls.at(lease_of(member_b_)), 3'600);
  EXPECT_FALSE(etcd_.keys.contains(alive_b_));
  const auto lease = lease_of(member_b_);
  ASSERT_TRUE(a_.refresh());
  EXPECT_EQ(lease_of(member_b_), lease);
}

// Rolling upgrades: they write it with each entry.
TEST_F(EtcdRegistrationTest, KeysOfEarlierVersions_AreIgnored) {
  etcd_.put("spoor/test/ledger", R"({"id":"0123","entered":5,"left":2,"recent":[]})");
  etcd_.put("spoor/test/opener", "a");
  ASSERT_TRUE(a_.refresh());
  EXPECT_THAT(in_registry(), ElementsAre("http://10.0.0.1:7420"));
  EXPECT_TRUE(etcd_.keys.contains("spoor/test/ledger"));
}

TEST_F(EtcdRegistrationTest, ConcurrentRegistrations_AreAllKept) {
  int others = 0;
  bool is_other = false;
  etcd_.before = [&](const std::string& target) {
    if (is_other || target != "/v3/kv/txn") return;
    is_other = true;
    auto other = node("n" + std::to_string(++others), "http://10.0.1.1:7420");
    ASSERT_TRUE(other.refresh());
    is_other = false;
  };
  ASSERT_TRUE(a_.refresh());
  EXPECT_TRUE(a_.is_registered());
  EXPECT_THAT(in_registry(), ElementsAre("http://10.0.0.1:7420", "http://10.0.1.1:7420"));
}

TEST_F(EtcdRegistrationTest, OwnEntry_IsNotListedAndHasAHome) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(b_.refresh());
  const auto seen_by_b = listing("http://10.0.0.2:7420");
  EXPECT_THAT(seen_by_b.listed, ElementsAre("http://10.0.0.1:7420"));
  EXPECT_THAT(seen_by_b.homes.at("a"), ElementsAre("http://10.0.0.1:7420"));
  EXPECT_THAT(seen_by_b.homes.at("b"), ElementsAre("http://10.0.0.2:7420"));
}

TEST_F(EtcdRegistrationTest, MemberNotAlive_IsListedAsNotAlive) {
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(b_.refresh());
  EXPECT_THAT(listing().not_alive, IsEmpty());
  etcd_.expire(lease_of(alive_a_));
  EXPECT_THAT(listing().not_alive, ElementsAre("http://10.0.0.1:7420"));
  EXPECT_THAT(listing().listed, ElementsAre("http://10.0.0.1:7420", "http://10.0.0.2:7420"))
      << "it is down, and a scan has to wait for it";
  auto same_url = node("d", "http://10.0.0.1:7420", "j");
  ASSERT_TRUE(same_url.refresh());
  EXPECT_THAT(listing().not_alive, IsEmpty()) << "another node is alive there";
}

TEST_F(EtcdRegistrationTest, NodeMoved_OldAddressIsNotListedOnceNotAlive) {
  ASSERT_TRUE(a_.refresh());
  const auto old = lease_of(alive_a_);
  auto moved = node("a", "http://10.0.0.9:7420");
  ASSERT_TRUE(moved.refresh());
  EXPECT_EQ(in_registry().size(), 2U) << "the old one may be alive";
  EXPECT_THAT(moved.conflict(), HasSubstr("another spoord registers as node 'a' at http://10.0.0.1:7420"));
  EXPECT_THAT(listing().listed, ElementsAre("http://10.0.0.1:7420", "http://10.0.0.9:7420"));
  etcd_.expire(old);
  ASSERT_TRUE(moved.refresh());
  EXPECT_THAT(moved.conflict(), IsEmpty());
  EXPECT_THAT(listing().listed, ElementsAre("http://10.0.0.9:7420"));
}

// The one that is down may have acknowledged marks.
TEST_F(EtcdRegistrationTest, OtherInstanceOfTheNameAlive_OldAddressStaysListed) {
  ASSERT_TRUE(a_.refresh());
  etcd_.expire(lease_of(alive_a_));
  auto other = node("a", "http://10.0.0.9:7420", "j");
  ASSERT_TRUE(other.refresh());
  EXPECT_THAT(listing().listed, ElementsAre("http://10.0.0.1:7420", "http://10.0.0.9:7420"));
}

TEST_F(EtcdRegistrationTest, DuplicateNodeNameBothRunning_BothStayInMembership) {
  auto twin = node("a", "http://10.0.0.9:7420");
  ASSERT_TRUE(a_.refresh());
  ASSERT_TRUE(twin.refresh());
  ASSERT_TRUE(a_.refresh());
  EXPECT_THAT(in_registry(), UnorderedElementsAre("http://10.0.0.1:7420", "http://10.0.0.9:7420"));
  EXPECT_THAT(a_.conflict(), HasSubstr("http://10.0.0.9:7420"));
  auto at_same_url = node("a", "http://10.0.0.1:7420");
  ASSERT_TRUE(at_same_url.refresh());
  ASSERT_TRUE(a_.refresh());
  EXPECT_THAT(a_.conflict(), HasSubstr("another spoord"));
  // One of them loses etcd, and goes on.
  etcd_.expire(lease_of(alive_a_));
  ASSERT_TRUE(twin.refresh());
  EXPECT_EQ(in_registry().size(), 2U);
}

TEST_F(EtcdRegistrationTest, InvalidMemberEntry_IsAnErrorAndNotSkipped) {
  ASSERT_TRUE(a_.refresh());
  const std::string values[] = {"",
                                "[]",
                                R"({"node":"x","url":"http://10.0.0.3"})",
                                R"({"node":"x"})",
                                R"({"node":"","url":"http://10.0.0.3:7420"})",
                                R"({"node":"x","url":"ftp://10.0.0.3:7420"})",
                                "{\"node\":\"x\",\"url\":\"http://a\\r\\nb\"}",
                                std::string(5000, ' ') + R"({"node":"x","url":"http://10.0.0.3:7420"})"};
  for (const std::string& value : values) {
    etcd_.put("spoor/test/members/x/http%3A%2F%2F10.0.0.3%3A7420", value);
    const auto registry = read_registry(client_, location);
    ASSERT_FALSE(registry) << value;
    EXPECT_THAT(registry.error().message, HasSubstr("spoor/test/members/x/"));
    EXPECT_FALSE(a_.refresh());
    EXPECT_EQ(a_.registry().size(), 1U);
    EXPECT_TRUE(a_.is_registered());
  }
  etcd_.put("spoor/test/members/x/http%3A%2F%2F10.0.0.3%3A7420",
            R"({"node":"x","url":"http://10.0.0.3:7420","later":{}})");
  EXPECT_EQ(in_registry().size(), 2U);
}

TEST_F(EtcdRegistrationTest, SimilarClusterAndNodeNames_AreKeptApart) {
  ASSERT_TRUE(a_.refresh());
  for (const EtcdLocation& other : {EtcdLocation{"spoor", "test2"}, EtcdLocation{"spoor", "tes"},
                                    EtcdLocation{"spoor", "te/st"}, EtcdLocation{"s", "test"}}) {
    EXPECT_THAT(read_registry(client_, other).value(), IsEmpty()) << other.cluster;
  }
  auto odd = node("a/http%", "unix:/a/b");
  ASSERT_TRUE(odd.refresh());
  ASSERT_TRUE(odd.refresh());
  EXPECT_EQ(odd.registry().size(), 2U);
  EXPECT_THAT(odd.conflict(), IsEmpty());
}

// The same daemon, whose URL has changed: one of its entries is alive.
TEST(EtcdListingTest, OneOfSeveralEntriesIsAlive_TheMemberIs) {
  const std::string instance = tracker::InstanceId::random().to_string();
  const auto entry = [&](const std::string& url, std::optional<EtcdLease> alive) {
    return RegistryEntry{{"a", url, instance}, base::parse_endpoint(url).value(), {}, alive};
  };
  const RegistryEntry alive = entry("http://10.0.0.1:7420", EtcdLease{7});
  const RegistryEntry dead = entry("http://10.0.0.2:7420", {});
  for (const auto& registry : {std::vector{alive, dead}, std::vector{dead, alive}}) {
    const auto registered = to_listing(registry, "").registered;
    ASSERT_EQ(registered.size(), 1U);
    EXPECT_TRUE(registered.begin()->second);
  }
}

}  // namespace
}  // namespace spoor::peer
