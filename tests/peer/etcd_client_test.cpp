#include "peer/membership/etcd_client.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>
#include <utility>

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

  // Whether all are put.
  bool put(const std::vector<EtcdPut>& puts) { return static_cast<bool>(client_.put(puts)); }

  std::vector<std::string> listed(const EtcdRange& range) {
    std::vector<std::string> all;
    for (const EtcdEntry& entry : client_.list(range).value()) all.push_back(entry.key + '=' + entry.value);
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

TEST_F(EtcdClientTest, List_ReturnsPutKeysWithLeaseAndRevision) {
  const EtcdLease lease = granted();
  ASSERT_TRUE(put({{"p/b", std::string("\0\xff", 2), lease}, {"p/a", ""}, {"q", "x"}}));
  const auto entries = client_.list({"p/", "p0"});
  ASSERT_TRUE(entries) << entries.error().message;
  ASSERT_EQ(entries->size(), 2U);
  EXPECT_EQ(entries->at(0).key, "p/a");
  EXPECT_EQ(entries->at(0).lease, EtcdLease());
  EXPECT_EQ(entries->at(1).value, std::string("\0\xff", 2));
  EXPECT_EQ(entries->at(1).lease, lease);
  EXPECT_EQ(entries->at(1).mod_revision, etcd_.keys["p/b"].mod_revision);
}

// Half a character, left of one that is cut at 20 bytes, would be no JSON.
TEST_F(EtcdClientTest, ClusterIdThatIsNoNumber_IsAnError) {
  for (const std::string id :
       {"1234567890123456789\xc3\xa9", "z\xc3\xbcrich", "-1", "111111111111111111111"}) {
    etcd_.cluster_id = id;
    EXPECT_FALSE(client_.state({"p/", "p0"})) << id;
  }
}

TEST_F(EtcdClientTest, List_ManyKeys_ReadsAllPages) {
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

TEST_F(EtcdClientTest, List_KeysChangeBetweenPages_IsOfOneMoment) {
  for (const char* key : {"p/a", "p/b", "p/c"}) etcd_.put(key, "v");
  etcd_.page_max = 1;
  etcd_.after = [&](auto&) {
    etcd_.erase("p/c");
    etcd_.put("p/b2", "v");
  };
  EXPECT_THAT(listed({"p/", "p0"}), ElementsAre("p/a=v", "p/b=v", "p/c=v"));
}

TEST_F(EtcdClientTest, List_TooManyKeysOrEmptyPage_IsAnError) {
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

TEST_F(EtcdClientTest, LeaseExpired_KeepAliveAndRevokeAreNoError) {
  const EtcdLease lease = granted();
  EXPECT_TRUE(client_.keep_alive(lease).value());
  etcd_.expire(lease.id);
  EXPECT_FALSE(client_.keep_alive(lease).value());
  EXPECT_TRUE(client_.revoke(lease));
  EXPECT_FALSE(put({{"a", "b", lease}}));
  EXPECT_EQ(etcd_.asked.back(), "a /v3/kv/txn") << "another endpoint would say the same";
}

TEST_F(EtcdClientTest, LeaseRevoked_DeletesItsKeys) {
  const EtcdLease lease = granted();
  ASSERT_TRUE(put({{"a", "b", lease}, {"b", "b"}}));
  EXPECT_TRUE(client_.revoke(lease));
  EXPECT_THAT(listed({"a", "z"}), ElementsAre("b=b"));
}

TEST_F(EtcdClientTest, RangeState_DiffersAfterEveryChange) {
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
  etcd_.put("p/b", "2");
  expect_changed("the newest put again");
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

TEST_F(EtcdClientTest, EndpointDown_NextIsTriedAndKept) {
  etcd_.down = {"a"};
  granted();
  granted();
  etcd_.down = {"b", "c"};
  granted();
  EXPECT_THAT(etcd_.asked, ElementsAre("a /v3/lease/grant", "b /v3/lease/grant", "b /v3/lease/grant",
                                       "b /v3/lease/grant", "c /v3/lease/grant", "a /v3/lease/grant"));
}

TEST_F(EtcdClientTest, AllEndpointsDown_ErrorNamesEach) {
  etcd_.down = {"a", "b", "c"};
  const auto lease = client_.grant(std::chrono::seconds(1));
  ASSERT_FALSE(lease);
  for (const char* host : {"http://a:2379", "http://b:2379", "http://c:2379"}) {
    EXPECT_THAT(lease.error().message, HasSubstr(host));
  }
}

TEST_F(EtcdClientTest, DeadlineOrStop_NoFurtherEndpointIsTried) {
  etcd_.before = [&](auto&) { clock_.advance(std::chrono::seconds(5)); };
  answer("", 503);
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_THAT(etcd_.asked, ElementsAre("a /v3/lease/grant", "b /v3/lease/grant")) << "another one each time";
  stop_.request_stop();
  EXPECT_FALSE(client_.grant(std::chrono::seconds(1)));
  EXPECT_EQ(etcd_.asked.size(), 2U);
}

TEST_F(EtcdClientTest, RequestRefused_ErrorContainsEtcdMessage) {
  answer(R"({"error":"etcdserver: mvcc: database space exceeded\u001b[2J","code":8})", 429);
  EXPECT_THAT(client_.grant(std::chrono::seconds(1)).error().message,
              HasSubstr("http://a:2379: etcdserver: mvcc: database space exceeded\\x1b[2J"));
  answer("no gateway\r\nfor you", 400);
  const auto message = client_.grant(std::chrono::seconds(1)).error().message;
  EXPECT_THAT(message, HasSubstr("http://a:2379: HTTP status 400: no gateway"));
  EXPECT_THAT(message, testing::Not(HasSubstr("for you")));
  // An error in a stream comes with status 200.
  answer(R"({"error":{"grpc_code":14,"message":"no leader"}})");
  EXPECT_THAT(client_.keep_alive({1}).error().message,
              HasSubstr("the request to etcd failed: http://a:2379: no leader"));
}

TEST_F(EtcdClientTest, MalformedResponse_IsAnError) {
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
      R"({"error":"x","header":{"revision":"1"},"ID":"1","result":{"TTL":"1"},"succeeded":true})",
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
    EXPECT_FALSE(put({{"a", "b"}})) << body.substr(0, 100);
  }
}

// With a user, at an etcd that authenticates its users.
class EtcdUserTest : public testing::Test {
 protected:
  EtcdUserTest() {
    etcd_.has_auth = true;
    etcd_.passwords["spoor"] = password;
  }

  base::Result<EtcdLease> grant() { return client_.grant(std::chrono::seconds(30)); }

  static constexpr const char* authenticate = "a /v3/auth/authenticate";
  static constexpr const char* grant_request = "a /v3/lease/grant";
  static constexpr const char* password = "hunter2-hunter2";

  fakes::FakeEtcd etcd_;
  fakes::ManualClock clock_;
  EtcdClient client_{etcd_,
                     clock_,
                     {{"a", 2379, {}}},
                     {.user = "spoor", .password = password, .operation_max = std::chrono::seconds(5)}};
};

TEST_F(EtcdUserTest, Token_IsSentWithEachRequest) {
  ASSERT_TRUE(grant());
  ASSERT_TRUE(client_.keep_alive(*grant()));
  EXPECT_THAT(etcd_.asked, ElementsAre(authenticate, grant_request, grant_request, "a /v3/lease/keepalive"));
  EXPECT_THAT(etcd_.authorizations, ElementsAre("", "token.1", "token.1", "token.1"));
}

TEST_F(EtcdUserTest, NoUserConfigured_NoTokenIsRequestedOrSent) {
  EtcdClient client(etcd_, clock_, {{"a", 2379, {}}}, {.operation_max = std::chrono::seconds(5)});
  EXPECT_THAT(client.grant(std::chrono::seconds(30)).error().message, HasSubstr("user name is empty"));
  etcd_.has_auth = false;
  EXPECT_TRUE(client.grant(std::chrono::seconds(30)));
  EXPECT_THAT(etcd_.asked, ElementsAre(grant_request, grant_request));
  EXPECT_THAT(etcd_.authorizations, ElementsAre("", ""));
}

TEST_F(EtcdUserTest, TokenNoLongerValid_AuthenticatesOnceMore) {
  ASSERT_TRUE(grant());
  etcd_.tokens.clear();  // etcd restarted
  EXPECT_TRUE(grant());
  EXPECT_THAT(etcd_.asked,
              ElementsAre(authenticate, grant_request, grant_request, authenticate, grant_request));
  EXPECT_EQ(etcd_.authorizations.back(), "token.2");
}

TEST_F(EtcdUserTest, TokenRefusedInAStream_AuthenticatesOnceMore) {
  const EtcdLease lease = *grant();
  etcd_.after = [is_first = true](HttpResponse& response) mutable {
    if (std::exchange(is_first, false)) {
      response.body = R"({"error":{"grpc_code":16,"http_code":401,"message":"invalid auth token"}})";
    }
  };
  EXPECT_TRUE(client_.keep_alive(lease).value());
  EXPECT_EQ(etcd_.authorizations.back(), "token.2");
}

TEST_F(EtcdUserTest, AuthenticationEnabledLater_AuthenticatesThen) {
  etcd_.has_auth = false;
  ASSERT_TRUE(grant());
  ASSERT_TRUE(grant());
  EXPECT_THAT(etcd_.asked, ElementsAre(authenticate, grant_request, grant_request)) << "one attempt";
  etcd_.has_auth = true;
  EXPECT_TRUE(grant());
  EXPECT_EQ(etcd_.authorizations.back(), "token.1");
}

TEST_F(EtcdUserTest, EveryTokenRefused_EndsAfterOneRetry) {
  etcd_.before = [&](auto&) { etcd_.tokens.clear(); };
  EXPECT_THAT(grant().error().message,
              HasSubstr("etcd failed: http://a:2379: etcdserver: invalid auth token"));
  EXPECT_THAT(etcd_.asked, ElementsAre(authenticate, grant_request, authenticate, grant_request));
}

TEST_F(EtcdUserTest, PermissionDenied_DoesNotAuthenticateAgain) {
  etcd_.after = [&](HttpResponse& response) {
    if (etcd_.asked.back() != authenticate) {
      response = {403, "application/json", R"({"message":"etcdserver: permission denied","code":7})"};
    }
  };
  EXPECT_THAT(grant().error().message, HasSubstr("http://a:2379: etcdserver: permission denied"));
  EXPECT_THAT(etcd_.asked, ElementsAre(authenticate, grant_request));
}

// It would become a field of a request, or a part of one.
TEST_F(EtcdUserTest, TokenThatIsNoFieldValue_IsNeverSent) {
  using json = nlohmann::json;
  for (const json& token :
       {json("a\r\nHost: b"), json("a\nb"), json("a b"), json("a\u00e9"), json(std::string("a\0b", 3)),
        json(""), json(std::string(8193, 'a')), json(7), json::array({"a"}), json(true)}) {
    etcd_.next_token = token;
    const auto granted = grant();
    ASSERT_FALSE(granted) << token;
    EXPECT_THAT(granted.error().message, HasSubstr("http://a:2379: etcd returned no token"));
  }
  EXPECT_THAT(etcd_.asked, testing::Each(authenticate));
  EXPECT_THAT(etcd_.authorizations, testing::Each(""));
  etcd_.next_token = nullptr;
  EXPECT_TRUE(grant());
}

TEST_F(EtcdUserTest, Errors_NameTheUserAndNeverThePassword) {
  std::vector<std::string> messages;
  etcd_.passwords["spoor"] = "another one";
  messages.push_back(grant().error().message);
  EXPECT_THAT(messages[0], HasSubstr("http://a:2379: user 'spoor': etcdserver: authentication failed"));
  for (const char* body : {"", "{}", R"({"token":null})", R"({"error":"x"})"}) {
    etcd_.after = [=](HttpResponse& response) { response = {200, "application/json", body}; };
    messages.push_back(grant().error().message);
  }
  etcd_.down = {"a"};
  messages.push_back(grant().error().message);
  EXPECT_THAT(messages, testing::Each(testing::Not(HasSubstr(password))));
}

TEST_F(EtcdUserTest, PasswordReplaced_NextRequestAuthenticatesWithIt) {
  ASSERT_TRUE(grant());
  etcd_.passwords["spoor"] = "new";
  etcd_.tokens.clear();
  EXPECT_FALSE(grant());
  client_.set_transport(etcd_, "new");
  EXPECT_TRUE(grant());
  EXPECT_EQ(etcd_.authorizations.back(), "token.2");
}

}  // namespace
}  // namespace spoor::peer
