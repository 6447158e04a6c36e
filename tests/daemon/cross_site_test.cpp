#include "daemon/api/access.h"

#include <gtest/gtest.h>

#include <string>

namespace spoor::daemon {
namespace {

constexpr bool asks = true;
const Caller on_loopback{.marks_without_tokens = true};
const Caller on_insecure{.is_trusted = true};

HttpRequest post(const std::string& host, const std::string& origin = {},
                 const Caller& caller = on_loopback) {
  HttpRequest request;
  request.method = "POST";
  request.host = host;
  request.origin = origin;
  request.caller = caller;
  return request;
}

std::string code_of(const HttpRequest& request, bool asks_for_credentials = false) {
  const auto problem = refuse_cross_site(request, asks_for_credentials, "node-1");
  if (!problem) return "";
  EXPECT_EQ(problem->status, 403U);
  return problem->code;
}

TEST(CrossSiteTest, HostHeader_NamesThisNode_IsAccepted) {
  for (const char* host :
       {"127.0.0.1", "127.0.0.1:7420", "10.0.0.1:7420", "[::1]", "[::1]:7420", "::1", "::ffff:127.0.0.1",
        "localhost", "localhost.", "LocalHost:7420", "node-1", "NODE-1:7420", ""}) {
    EXPECT_EQ(code_of(post(host)), "") << host;
  }
}

// A page whose name was made to lead to this machine.
TEST(CrossSiteTest, HostHeader_OfAnotherSite_IsRefused) {
  for (const char* host :
       {"evil.example", "evil.example:7420", "127.0.0.1.evil.example", "localhost.evil.example",
        "node-1.evil.example", "node-10", "[evil]:7420", "127.0.0.1@evil.example", "evil::1x"}) {
    EXPECT_EQ(code_of(post(host)), "foreign_host") << host;
    EXPECT_EQ(code_of(post(host, std::string("http://") + host)), "foreign_host") << host;
  }
}

TEST(CrossSiteTest, OriginHeader_OfAnotherSite_IsRefused) {
  for (const char* origin :
       {"http://evil.example", "https://evil.example:7420", "null", "x", "http://localhost",
        "http://127.0.0.1:8080", "http://127.0.0.1:7420.evil.example"}) {
    EXPECT_EQ(code_of(post("127.0.0.1:7420", origin)), "foreign_origin") << origin;
    EXPECT_EQ(code_of(post("127.0.0.1:7420", origin, on_insecure)), "foreign_origin") << origin;
  }
  EXPECT_EQ(code_of(post("127.0.0.1:7420", "http://127.0.0.1:7420")), "");
  EXPECT_EQ(code_of(post("Localhost:7420", "http://localhost:7420")), "");
}

// A browser sends an Origin; peers do not.
TEST(CrossSiteTest, InsecureListener_AnyHostWithoutOrigin_IsAccepted) {
  EXPECT_EQ(code_of(post("spoor.storage.example:7420", "", on_insecure)), "");
  EXPECT_EQ(code_of(post("spoor.storage.example", "http://spoor.storage.example", on_insecure)),
            "foreign_host");
}

// A browser that was led here by another name gets no certificate for it.
TEST(CrossSiteTest, OverTls_AnyHostIsAcceptedButNoForeignOrigin) {
  const Caller over_tls{.marks_without_tokens = true, .is_tls = true};
  EXPECT_EQ(code_of(post("node1.storage.example:7420", "", over_tls)), "");
  EXPECT_EQ(code_of(post("node1.storage.example", "https://evil.example", over_tls)), "foreign_origin");
}

TEST(CrossSiteTest, UnixSocket_HostAndOriginAreNotChecked) {
  EXPECT_EQ(code_of(post("x", "http://evil.example", Caller{.unix_peer = UnixPeer{1000, {}}})), "");
}

// A browser adds passwords and certificates by itself, tokens never.
TEST(CrossSiteTest, ForeignOrigin_WithCredentials_IsRefusedUnlessBearerToken) {
  HttpRequest request = post("storage.example", "http://evil.example", {});
  request.authorization = "Bearer a-token-of-twenty-two";
  EXPECT_EQ(code_of(request, asks), "");
  request.authorization = "Basic eDp5";
  EXPECT_EQ(code_of(request, asks), "foreign_origin");
  EXPECT_EQ(code_of(post("storage.example", "", {}), asks), "");
}

}  // namespace
}  // namespace spoor::daemon
