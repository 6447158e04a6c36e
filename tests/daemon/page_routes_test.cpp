// Who gets the page.
#include <gtest/gtest.h>

#include <string>

#include "tests/daemon/api_fixture.h"
#include "tests/daemon/test_token.h"

namespace spoor::daemon {
namespace {

class PageRoutesTest : public ApiTest {
 protected:
  PageRoutesTest() { start(); }

  // Of a loopback listener.
  static HttpRequest request(const std::string& method, const std::string& path) {
    HttpRequest made;
    made.method = method;
    made.path = path;
    made.host = "127.0.0.1:7420";
    made.caller.marks_without_tokens = true;
    return made;
  }

  unsigned status_of(const HttpRequest& request) {
    return api_->admit(request).value_or(HttpResponse{}).status;
  }
  std::string problem_of(const HttpRequest& request) {
    return api_->admit(request).value_or(HttpResponse{}).problem;
  }
};

TEST_F(PageRoutesTest, PageWithoutToken_IsServedButNoData) {
  api_->set_access(std::make_shared<const Access>(access_with_token(config::Role::read)));
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

TEST_F(PageRoutesTest, RouteLabels_AreBounded) {
  EXPECT_EQ(route_of("/page/app.js"), "/page/{name}");
  EXPECT_EQ(route_of("/page/whatever-a-client-sends"), "/page/{name}");
  EXPECT_EQ(route_of("/page/a/b"), "other");
  EXPECT_EQ(route_of("/"), "/");
  EXPECT_EQ(route_of("//"), "other");
}

}  // namespace
}  // namespace spoor::daemon
