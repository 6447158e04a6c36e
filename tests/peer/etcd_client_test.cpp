#include "peer/etcd_client.h"

#include <gmock/gmock.h>

#include "tests/fakes/fake_etcd.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::peer {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class EtcdClientTest : public testing::Test {
 protected:
  // What etcd answers from now on, whatever it is asked.
  void answer(std::string body, unsigned status = 200) {
    etcd_.after = [=](HttpResponse& response) { response = {status, "application/json", body}; };
  }

  EtcdLease granted() { return client_.grant(std::chrono::seconds(30)).value(); }

  std::vector<std::string> listed(const EtcdRange& range) {
    std::vector<std::string> all;
    for (const EtcdEntry& entry : client_.list(range).value().entries)
      all.push_back(entry.key + '=' + entry.value);
    return all;
  }

  fakes::FakeEtcd etcd_;
  fakes::ManualClock clock_;
  std::stop_source stop_;
  EtcdClient client_{etcd_,
                     clock_,
                     {{"a", 2379, {}}, {"b", 2379, {}}, {"c", 2379, {}}},
                     {.operation_max = std::chrono::seconds(5), .stop = stop_.get_token()}};
};

TEST_F(EtcdClientTest, WhatIsPutIsListed) {
  const EtcdLease lease = granted();
  ASSERT_TRUE(
      client_.put(std::vector<EtcdPut>{{"p/b", std::string("\0\xff", 2), lease}, {"p/a", ""}, {"q", "x"}}));
  const auto entries = client_.list({"p/", "p0"});
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->entries.size(), 2U);
  EXPECT_EQ(entries->entries[0].key, "p/a");
  EXPECT_EQ(entries->entries[0].lease, EtcdLease());
  EXPECT_EQ(entries->entries[1].value, std::string("\0\xff", 2));
  EXPECT_EQ(entries->entries[1].lease, lease);
  EXPECT_EQ(entries->entries[1].mod_revision, etcd_.keys["p/b"].mod_revision);
  EXPECT_EQ(entries->cluster_id, etcd_.cluster_id);
  EXPECT_EQ(entries->revision, etcd_.revision());
}

// A scan stores it as JSON: half a character, left of one cut at 20 bytes, ended the scan by an exception.
TEST_F(EtcdClientTest, ClusterIdThatIsNoNumber_IsAnError) {
  for (const std::string id :
       {"1234567890123456789\xc3\xa9", "z\xc3\xbcrich", "-1", "111111111111111111111"}) {
    etcd_.cluster_id = id;
    EXPECT_FALSE(client_.list({"p/", "p0"})) << id;
    EXPECT_FALSE(client_.state({"p/", "p0"})) << id;
  }
}

TEST_F(EtcdClientTest, ManyKeysAreListedInPages) {
  std::vector<std::string> all;
  for (char at = 'a'; at <= 'z'; ++at) {
    etcd_.put(std::string("p/") + at, "v");
    all.push_back(std::string("p/") + at + "=v");
  }
  for (const std::size_t page : {1U, 7U, 13U, 26U, 27U}) {
    etcd_.page_max = page;
    EXPECT_EQ(listed({"p/", "p0"}), all) << page;
  }
}

TEST_F(EtcdClientTest, MoreKeysThanItTakesAreAnError) {
  std::string body = R"({"header":{"revision":"1"},"more":true,"kvs":[)";
  answer(body + "]}");
  EXPECT_FALSE(client_.list({"p/", "p0"})) << "a page of nothing, and more to come";
  int at = 0;
  etcd_.after = [&](HttpResponse& response) {
    response.body = body + R"({"key":")" + base::to_base64("p/" + std::to_string(1'000'000 + at++)) + "\"}]}";
  };
  const auto entries = client_.list({"p/", "p0"});
  ASSERT_FALSE(entries);
  EXPECT_THAT(entries.error().message, HasSubstr("more than 20000 keys"));
}

TEST_F(EtcdClientTest, AGoneLeaseIsNoErrorToWhoKeepsOrRevokesIt) {
  const EtcdLease lease = granted();
  EXPECT_TRUE(client_.keep_alive(lease).value());
  etcd_.expire(lease.id);
  EXPECT_FALSE(client_.keep_alive(lease).value());
  EXPECT_TRUE(client_.revoke(lease));
  EXPECT_FALSE(client_.put(std::vector<EtcdPut>{{"a", "b", lease}}));
  EXPECT_EQ(etcd_.asked.back(), "a /v3/kv/txn") << "another endpoint would say the same";
}

TEST_F(EtcdClientTest, ARevokedLeaseTakesItsKeysAlong) {
  const EtcdLease lease = granted();
  ASSERT_TRUE(client_.put(std::vector<EtcdPut>{{"a", "b", lease}, {"b", "b"}}));
  EXPECT_TRUE(client_.revoke(lease));
  EXPECT_THAT(listed({"a", "z"}), ElementsAre("b=b"));
}

TEST_F(EtcdClientTest, OneOfTwoPutsAKeyThatIsAbsent) {
  const EtcdPut first{"k", "first", granted()};
  const EtcdPut second{"k", "second", granted()};
  EXPECT_TRUE(client_.put_if_absent(first).value());
  EXPECT_FALSE(client_.put_if_absent(second).value());
  EXPECT_TRUE(client_.put_if_absent(first).value()) << "the answer to an attempt before may have been lost";
  EXPECT_EQ(etcd_.keys["k"].value, "first");
}

TEST_F(EtcdClientTest, ChangesAreMadeWhereAllConditionsHoldOrNotAtAll) {
  etcd_.put("k", "1");
  const auto revision = etcd_.keys["k"].mod_revision;
  const EtcdChanges changes{{{"new", "2"}}, {"k"}};
  const auto change_if = [&](std::int64_t of_k, std::int64_t of_other) {
    return client_.change_if(std::vector<EtcdCondition>{{"k", of_k}, {"other", of_other}}, changes).value();
  };
  etcd_.put("other", "");
  EXPECT_FALSE(change_if(revision, 0));
  etcd_.erase("other");
  EXPECT_FALSE(change_if(revision + 1, 0));
  EXPECT_FALSE(change_if(0, 0));
  EXPECT_THAT(listed({"a", "z"}), ElementsAre("k=1"));
  EXPECT_TRUE(change_if(revision, 0));
  EXPECT_THAT(listed({"a", "z"}), ElementsAre("new=2"));
}

TEST_F(EtcdClientTest, EveryChangeOfARangeChangesItsState) {
  const EtcdRange range{"p/", "p0"};
  std::vector<EtcdRangeState> states{client_.state(range).value()};
  const auto expect_changed = [&](const char* what) {
    const auto now = client_.state(range).value();
    EXPECT_EQ(std::ranges::count(states, now), 0) << what;
    states.push_back(now);
  };
  etcd_.put("p/a", "1");
  expect_changed("put");
  etcd_.put("p/b", "1");
  expect_changed("another");
  etcd_.put("p/a", "2");
  expect_changed("put again");
  etcd_.erase("p/b");
  etcd_.put("p/c", "1");
  expect_changed("one for another");
  etcd_.erase("p/c");
  expect_changed("erased");
  etcd_.cluster_id = "1";
  expect_changed("another etcd");
  etcd_.put("q", "1");
  EXPECT_EQ(client_.state(range).value(), states.back()) << "outside";
}

TEST_F(EtcdClientTest, TheNextEndpointIsTriedAndTheOneThatAnsweredKept) {
  etcd_.down = {"a"};
  granted();
  granted();
  etcd_.down = {"b", "c"};
  granted();
  EXPECT_THAT(etcd_.asked, ElementsAre("a /v3/lease/grant", "b /v3/lease/grant", "b /v3/lease/grant",
                                       "b /v3/lease/grant", "c /v3/lease/grant", "a /v3/lease/grant"));
}

TEST_F(EtcdClientTest, WhereNoneAnswersAllAreNamed) {
  etcd_.down = {"a", "b", "c"};
  const auto lease = client_.grant(std::chrono::seconds(1));
  ASSERT_FALSE(lease);
  for (const char* host : {"http://a:2379", "http://b:2379", "http://c:2379"}) {
    EXPECT_THAT(lease.error().message, HasSubstr(host));
  }
}

TEST_F(EtcdClientTest, NoFurtherEndpointIsTriedAfterTheTimeOrAStop) {
  etcd_.before = [&](auto&) { clock_.advance(std::chrono::seconds(5)); };
  answer("", 503);
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_THAT(etcd_.asked, ElementsAre("a /v3/lease/grant", "b /v3/lease/grant")) << "another one each time";
  stop_.request_stop();
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_EQ(etcd_.asked.size(), 2U);
}

TEST_F(EtcdClientTest, WhatEtcdSaysOfARequestItRefusesIsTold) {
  answer(R"({"error":"etcdserver: mvcc: database space exceeded\u001b[2J","code":8})", 429);
  EXPECT_THAT(client_.grant(std::chrono::seconds(1)).error().message,
              HasSubstr("http://a:2379: etcdserver: mvcc: database space exceeded\\x1b[2J"));
  answer(R"({"error":{"grpc_code":14,"message":"no leader"}})");
  EXPECT_FALSE(client_.keep_alive({1})) << "an error in a stream comes with status 200";
}

TEST_F(EtcdClientTest, AnswersThatEtcdWouldNotGiveAreErrors) {
  const std::string bodies[] = {
      "",
      "[]",
      "{",
      "null",
      R"({"ID":{}})",
      R"({"ID":"-1","result":{"TTL":"x"},"kvs":{},"succeeded":1,"count":"99999999999999999999"})",
      R"({"ID":"1 ","result":[],"kvs":[1],"succeeded":"true","count":[]})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"?"}],"responses":[{}]})",
      R"({"header":[],"kvs":[{"key":7}],"responses":{}})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"cA==","lease":"1x"}]})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"eg=="}]})",
      R"({"header":{"revision":"1"},"kvs":[{"key":"cC9h"},{"key":"cC9h"}]})",
      std::string(EtcdClient::answer_bytes_max + 1, ' ') + R"({"header":{"revision":"1"},"ID":"1"})",
  };
  for (const std::string& body : bodies) {
    answer(body);
    EXPECT_FALSE(client_.list({"p/", "p0"})) << body.substr(0, 100);
    EXPECT_FALSE(client_.grant(std::chrono::seconds(1))) << body.substr(0, 100);
    EXPECT_FALSE(client_.keep_alive({1})) << body.substr(0, 100);
    EXPECT_FALSE(client_.put(std::vector<EtcdPut>{{"a", "b"}})) << body.substr(0, 100);
    EXPECT_FALSE(client_.put_if_absent({"a", "b", {1}})) << body.substr(0, 100);
  }
}

}  // namespace
}  // namespace spoor::peer
