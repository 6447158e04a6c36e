// Who gets the page, and what a session may.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/daemon/api_fixture.h"
#include "tests/daemon/test_token.h"

namespace spoor::daemon {
namespace {

class PageRoutesTest : public ApiTest {
 protected:
  // Of a loopback listener, where a token is required.
  PageRoutesTest() { start(); }

  void require_token(config::Role role) {
    api_->set_access(std::make_shared<const Access>(access_with_token(role)));
  }

  static HttpRequest request(const std::string& method, const std::string& path) {
    HttpRequest made;
    made.method = method;
    made.path = path;
    made.host = "127.0.0.1:7420";
    made.caller.marks_without_tokens = true;
    made.caller.is_loopback = true;
    return made;
  }

  unsigned status_of(const HttpRequest& request) {
    return api_->admit(request).value_or(HttpResponse{}).status;
  }
  std::string problem_of(const HttpRequest& request) {
    return api_->admit(request).value_or(HttpResponse{}).problem;
  }

  // A request for the status with a new session.
  HttpRequest sign_in() {
    HttpRequest made = request("POST", "/v1/session");
    made.authorization = std::string("Bearer ") + test_token;
    EXPECT_EQ(status_of(made), 200U);
    Asked& asked = asked_.emplace_back();
    asked.request = made;
    boost::asio::co_spawn(
        context_, api_->handle(asked.request),
        [&asked](const std::exception_ptr&, auto answer) { asked.answer = std::move(answer); });
    settle();
    const std::string cookie = asked.answer.value().headers.at("Set-Cookie");
    HttpRequest with_session = request("GET", "/v1/status");
    with_session.session = cookie.substr(cookie.find('=') + 1, cookie.find(';') - cookie.find('=') - 1);
    with_session.authorization =
        "Session " + nlohmann::json::parse(asked.answer.value().body).at("secret").get<std::string>();
    return with_session;
  }
};

TEST_F(PageRoutesTest, PageWithoutToken_IsServedButNoData) {
  require_token(config::Role::read);
  for (const char* path : {"/", "/page/app.js", "/page/nothing"})
    EXPECT_EQ(status_of(request("GET", path)), 200U);
  HttpRequest with_body = request("GET", "/page/app.js");
  with_body.has_body = true;
  EXPECT_EQ(problem_of(with_body), "invalid_request") << "it would wait for the body of any client";
  for (const char* path : {"/v1/status", "/v1/usage", "/metrics", "/v1/nothing", "/page/a/b", "/page/"}) {
    EXPECT_EQ(status_of(request("GET", path)), 401U) << path;
  }
}

TEST_F(PageRoutesTest, PageSwitchedOff_IsNotFound) {
  for (const auto& [method, path] :
       {std::pair("GET", "/"), {"GET", "/page/app.js"}, {"POST", "/v1/session"}}) {
    HttpRequest made = request(method, path);
    made.caller.is_trusted = true;
    EXPECT_EQ(status_of(made), 200U) << path;
    made.caller.gets_page = false;
    EXPECT_EQ(problem_of(made), "not_found") << path;
  }
  HttpRequest data = request("GET", "/v1/status");
  data.caller.is_trusted = true;
  data.caller.gets_page = false;
  EXPECT_EQ(status_of(data), 200U);
}

TEST_F(PageRoutesTest, Session_AllowsToReadOnly) {
  require_token(config::Role::admin);
  const HttpRequest with_session = sign_in();
  const auto status_with = [&](const std::string& method, const std::string& path) {
    HttpRequest made = with_session;
    made.method = method;
    made.path = path;
    made.has_length = true;
    return status_of(made);
  };
  for (const char* path : {"/v1/status", "/v1/usage", "/v1/scans", "/v1/changes", "/v1/drives", "/readyz"}) {
    EXPECT_EQ(status_with("GET", path), 200U) << path;
  }
  for (const char* path : {"/v1/marks", "/v1/snapshot", "/v1/peer/cycle", "/v1/drives/accept",
                           "/v1/drives/stamp", "/v1/session", "/v1/watch", "/v1/watch/sync"}) {
    EXPECT_EQ(status_with("POST", path), 401U) << path;
  }
  EXPECT_EQ(status_with("GET", "/v1/nothing"), 404U);
}

TEST_F(PageRoutesTest, SessionRequestsOfOtherSites_AreRefused) {
  require_token(config::Role::read);
  HttpRequest made = request("DELETE", "/v1/session");
  EXPECT_EQ(status_of(made), 200U);
  made.origin = "http://127.0.0.1:7420";
  EXPECT_EQ(status_of(made), 200U);
  made.origin = "http://evil.example";
  EXPECT_EQ(problem_of(made), "foreign_origin");
}

TEST_F(PageRoutesTest, Options_ListAllMethodsOfAPath) {
  EXPECT_EQ(api_->admit(request("OPTIONS", "/v1/session")).value().headers.at("Allow"),
            "DELETE, POST, OPTIONS");
  EXPECT_EQ(api_->admit(request("OPTIONS", "/page/app.js")).value().headers.at("Allow"),
            "GET, HEAD, OPTIONS");
  const auto wrong = api_->admit(request("PUT", "/v1/session")).value();
  EXPECT_EQ(wrong.status, 405U);
  EXPECT_EQ(wrong.headers.at("Allow"), "DELETE, POST, OPTIONS");
}

TEST_F(PageRoutesTest, RouteLabels_AreBounded) {
  EXPECT_EQ(route_of("/page/app.js"), "/page/{name}");
  EXPECT_EQ(route_of("/page/whatever-a-client-sends"), "/page/{name}");
  EXPECT_EQ(route_of("/page/a/b"), "other");
  EXPECT_EQ(route_of("/"), "/");
  EXPECT_EQ(route_of("//"), "other");
}

}  // namespace
}  // namespace spoor::daemon
