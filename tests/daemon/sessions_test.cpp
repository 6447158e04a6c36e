#include "daemon/api/sessions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/daemon/test_token.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::daemon {
namespace {

using config::Role;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr Roles reading = role_bit(Role::read) | role_bit(Role::admin);

class SessionsTest : public testing::Test {
 protected:
  static HttpRequest request(const std::string& method, const Caller& caller = {.is_loopback = true}) {
    HttpRequest made;
    made.method = method;
    made.caller = caller;
    return made;
  }

  static HttpRequest sign_in_request(const Caller& caller = {.is_loopback = true}) {
    HttpRequest made = request("POST", caller);
    made.authorization = std::string("Bearer ") + test_token;
    return made;
  }

  static std::string cookie_of(const HttpResponse& response) {
    const auto found = response.headers.find("Set-Cookie");
    return found == response.headers.end() ? "" : found->second;
  }

  static std::string id_of(const HttpResponse& response) {
    const std::string cookie = cookie_of(response);
    const std::string name = "spoor_session=";
    EXPECT_THAT(cookie, StartsWith(name));
    return cookie.substr(name.size(), cookie.find(';') - name.size());
  }

  static std::string secret_of(const HttpResponse& response) {
    return nlohmann::json::parse(response.body).at("secret");
  }

  std::string sign_in(const HttpRequest& request = sign_in_request()) {
    const auto response = sessions_.sign_in(request, access_);
    secrets_[id_of(response)] = secret_of(response);
    return id_of(response);
  }

  bool allow(const std::string& id, Roles allowed = reading, const std::string& method = "GET") {
    return allow(id, "Session " + secrets_[id], allowed, method);
  }
  bool allow(const std::string& id, const std::string& authorization, Roles allowed = reading,
             const std::string& method = "GET") {
    HttpRequest made = request(method);
    made.session = id;
    made.authorization = authorization;
    return sessions_.allow(made, allowed, access_);
  }

  fakes::ManualClock clock_;
  Access access_ = access_with_token(Role::read);
  Sessions sessions_{clock_};
  std::map<std::string, std::string> secrets_;  // by id
};

TEST_F(SessionsTest, SignIn_SetsACookieThatScriptsAndOtherSitesDoNotGet) {
  const auto plain = sessions_.sign_in(sign_in_request(), access_);
  EXPECT_EQ(plain.status, 200U);
  EXPECT_THAT(plain.body, MatchesRegex(R"(\{"session":true,"secret":"[0-9a-f]{64}"\})"));
  EXPECT_EQ(plain.headers.at("Cache-Control"), "no-store");
  EXPECT_THAT(cookie_of(plain), EndsWith("; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict"));
  EXPECT_EQ(id_of(plain).size(), 64U);
  const auto over_tls = sessions_.sign_in(sign_in_request({.is_tls = true}), access_);
  EXPECT_THAT(cookie_of(over_tls), EndsWith("; HttpOnly; SameSite=Strict; Secure"));
  EXPECT_NE(id_of(plain), id_of(over_tls));
  EXPECT_NE(secret_of(plain), secret_of(over_tls));
  EXPECT_NE(secret_of(plain), id_of(plain));
}

// The browser sends it to every port of the host.
TEST_F(SessionsTest, CookieWithoutItsSecret_IsRefused) {
  const std::string id = sign_in();
  const std::string other = sign_in();
  EXPECT_FALSE(allow(id, ""));
  for (const std::string& wrong : {std::string(), id, secrets_[other], secrets_[id] + "0"})
    EXPECT_FALSE(allow(id, "Session " + wrong)) << wrong;
  EXPECT_FALSE(allow(id, "Bearer " + secrets_[id]));
  EXPECT_TRUE(allow(id, "Session " + secrets_[id]));
}

TEST_F(SessionsTest, SignIn_PlainHttpFromOtherHosts_IsRefused) {
  const auto refused = sessions_.sign_in(sign_in_request(Caller{}), access_);
  EXPECT_EQ(refused.status, 403U);
  EXPECT_EQ(refused.problem, "tls_required");
  EXPECT_EQ(cookie_of(refused), "");
  EXPECT_NE(cookie_of(sessions_.sign_in(sign_in_request({.unix_peer = UnixPeer{1000, {}}}), access_)), "");
}

TEST_F(SessionsTest, SignIn_CallerThatNeedsNoToken_GetsNoSession) {
  const auto trusted = sessions_.sign_in(sign_in_request({.is_trusted = true}), access_);
  EXPECT_EQ(trusted.body, R"({"session":false})");
  EXPECT_EQ(cookie_of(trusted), "");
  EXPECT_EQ(cookie_of(sessions_.sign_in(request("POST"), access_)), "") << "admitted for its certificate";
}

TEST_F(SessionsTest, Session_MayReadAndNothingElse) {
  for (const Role role : {Role::read, Role::admin}) {
    access_ = access_with_token(role);
    const std::string id = sign_in();
    EXPECT_TRUE(allow(id));
    EXPECT_TRUE(allow(id, all_roles));
    EXPECT_FALSE(allow(id, role_bit(Role::admin)));
    EXPECT_FALSE(allow(id, role_bit(Role::mark) | role_bit(Role::admin)));
    EXPECT_FALSE(allow(id, role_bit(Role::peer)));
    for (const char* method : {"POST", "DELETE", "OPTIONS"}) EXPECT_FALSE(allow(id, all_roles, method));
  }
  access_ = access_with_token(Role::mark);
  EXPECT_EQ(cookie_of(sessions_.sign_in(sign_in_request(), access_)), "");
}

TEST_F(SessionsTest, UnknownId_IsRefused) {
  const std::string id = sign_in();
  for (const std::string& wrong :
       {std::string(), id.substr(1), id + "0", std::string(64, '0'), "A" + id.substr(1)}) {
    EXPECT_FALSE(allow(wrong, "Session " + secrets_[id])) << wrong;
  }
}

TEST_F(SessionsTest, SignOut_EndsTheSession) {
  HttpRequest request = this->request("DELETE");
  request.session = sign_in();
  const auto signed_out = sessions_.sign_out(request);
  EXPECT_EQ(signed_out.status, 200U);
  EXPECT_THAT(cookie_of(signed_out), HasSubstr("spoor_session=; Path=/; Max-Age=0;"));
  EXPECT_FALSE(allow(request.session));
  EXPECT_EQ(sessions_.sign_out(request).status, 200U) << "a second time";
}

// The cookie of one daemon replaced that of another on the same host.
TEST_F(SessionsTest, Cookie_IsNamedAfterThePort) {
  for (const auto& [host, name] : std::map<std::string, std::string>{{"n1:7420", "spoor_session_7420"},
                                                                     {"[::1]:7421", "spoor_session_7421"},
                                                                     {"[::1]", "spoor_session"},
                                                                     {"n1", "spoor_session"},
                                                                     {"n1:123456", "spoor_session"},
                                                                     {"n1:7;x=", "spoor_session"}}) {
    HttpRequest request = sign_in_request();
    request.host = host;
    EXPECT_THAT(cookie_of(sessions_.sign_in(request, access_)), StartsWith(name + "="));
    EXPECT_THAT(cookie_of(sessions_.sign_out(request)), StartsWith(name + "=;"));
  }
}

TEST_F(SessionsTest, SignInAgain_EndsTheFormerSession) {
  HttpRequest again = sign_in_request();
  again.session = sign_in();
  const std::string fresh = sign_in(again);
  EXPECT_FALSE(allow(again.session));
  EXPECT_TRUE(allow(fresh));
}

TEST_F(SessionsTest, UnusedSession_EndsAfterHalfADay_AndAnyAfterADay) {
  const std::string unused = sign_in();
  clock_.advance(std::chrono::hours(11));
  EXPECT_TRUE(allow(unused));
  clock_.advance(std::chrono::hours(12));
  EXPECT_FALSE(allow(unused));
  const std::string id = sign_in();
  for (int i = 0; i < 3; ++i) {
    clock_.advance(std::chrono::hours(7));
    EXPECT_TRUE(allow(id));
  }
  clock_.advance(std::chrono::hours(3));
  EXPECT_FALSE(allow(id));
}

TEST_F(SessionsTest, RemovedToken_EndsItsSessions) {
  const std::string id = sign_in();
  access_ = Access::load({}).value();
  EXPECT_FALSE(allow(id));
  access_ = access_with_token(Role::mark);
  EXPECT_FALSE(allow(id)) << "its role was taken";
}

TEST_F(SessionsTest, TooManySessions_EvictTheLeastRecentlyUsed) {
  const std::string used = sign_in();
  const std::string unused = sign_in();
  clock_.advance(std::chrono::minutes(1));
  for (std::size_t i = 2; i < Sessions::sessions_max; ++i) sign_in();
  EXPECT_TRUE(allow(used));
  const std::string last = sign_in();
  EXPECT_TRUE(allow(used));
  EXPECT_TRUE(allow(last));
  EXPECT_FALSE(allow(unused));
}

}  // namespace
}  // namespace spoor::daemon
