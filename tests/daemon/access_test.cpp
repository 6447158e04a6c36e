#include "daemon/api/access.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/base64.h"
#include "tests/daemon/test_token.h"
#include "tests/support/temp_directory.h"

namespace spoor::daemon {
namespace {

using config::Role;

const std::string token = test_token;

HttpRequest with_token(const std::string& authorization) {
  HttpRequest request;
  request.authorization = authorization;
  return request;
}

Access load(const config::Config::Auth& auth) { return Access::load(auth).value(); }

TEST(AccessTest, BearerToken_HasItsRoleAndNoOther) {
  const Access access = access_with_token(Role::mark);
  EXPECT_EQ(access.roles_of(with_token("bearer   " + token)), role_bit(Role::mark));
  for (const std::string& wrong :
       {std::string(), token, "Basic " + token, std::string("Bearer"), std::string("Bearer "),
        "Bearer " + token + "x", std::string("Bearer ") + test_token_sha256,
        std::string("Bearer a-token-of-twenty-tw")}) {
    EXPECT_EQ(access.roles_of(with_token(wrong)), 0U) << wrong;
  }
}

TEST(AccessTest, TokenFile_IsReadAndErrorsHideTheToken) {
  const support::TempDirectory directory;
  std::ofstream(directory / "token") << token << '\n';
  config::Config::Auth auth;
  auth.tokens = {{.name = "a", .role = Role::peer, .file = directory / "token"}};
  EXPECT_EQ(load(auth).roles_of(with_token("Bearer " + token)), role_bit(Role::peer));
  std::ofstream(directory / "token") << "short";
  const auto failed = Access::load(auth);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message.find("short"), std::string::npos) << failed.error().message;
  auth.tokens[0].file = directory / "none";
  EXPECT_FALSE(Access::load(auth));
}

constexpr Role every_role[] = {Role::mark, Role::read, Role::peer, Role::admin};

// By whatever a caller shows: a role that is swapped for another, or widened, would go unnoticed otherwise.
TEST(AccessTest, EachCredential_GrantsItsRoleAlone) {
  const support::TempDirectory directory;
  std::ofstream(directory / "token") << token << '\n';
  const UnixPeer nobody{65'534, {7}};
  for (const Role role : every_role) {
    EXPECT_EQ(access_with_token(role).roles_of(with_token("Bearer " + token)), role_bit(role));
    config::Config::Auth auth;
    auth.tokens = {{.name = "a", .role = role, .file = directory / "token"}};
    EXPECT_EQ(load(auth).roles_of(with_token("Bearer " + token)), role_bit(role));
    auth = {};
    auth.unix_peers = {{.user = "nobody", .role = role}};
    HttpRequest request;
    request.caller.unix_peer = nobody;
    EXPECT_EQ(load(auth).roles_of(request), role_bit(role));
    auth.unix_peers = {{.group = "lp", .role = role}};
    EXPECT_EQ(load(auth).roles_of(request), role_bit(role));
    request.caller.unix_peer = UnixPeer{65'534, {65'534}};
    EXPECT_EQ(load(auth).roles_of(request), 0U) << "it is in another group";
    auth = {};
    auth.certificates = {{.name = "a.example", .role = role}};
    request.caller = Caller{.has_certificate = true, .certificate_names = {"a.example"}};
    EXPECT_EQ(load(auth).roles_of(request), role_bit(role));
  }
}

TEST(AccessTest, EachRole_GrantsAccessToItsRequestsAlone) {
  for (const Role role : every_role) {
    const Access access = access_with_token(role);
    for (const Role needed : every_role) {
      const auto problem = access.refuse(with_token("Bearer " + token), role_bit(needed));
      EXPECT_EQ(problem.has_value(), role != needed);
    }
    EXPECT_FALSE(access.refuse(with_token("Bearer " + token), all_roles));
  }
}

TEST(AccessTest, OneOfSeveralTokens_GrantsItsOwnRole) {
  config::Config::Auth auth;
  auth.tokens = {{.name = "other", .role = Role::admin, .sha256 = std::string(64, '0')},
                 {.name = "a", .role = Role::read, .sha256 = test_token_sha256}};
  EXPECT_EQ(load(auth).roles_of(with_token("Bearer " + token)), role_bit(Role::read));
}

TEST(AccessTest, Loopback_MarksOnly_AndNotEvenThatWhereTokensAreConfigured) {
  HttpRequest request;
  request.caller.marks_without_tokens = true;
  EXPECT_EQ(load({}).roles_of(request), role_bit(Role::mark));
  EXPECT_FALSE(load({}).asks_for_credentials(request.caller));
  EXPECT_EQ(access_with_token(Role::mark).roles_of(request), 0U);
  EXPECT_TRUE(access_with_token(Role::mark).asks_for_credentials(request.caller));
  request.caller.is_trusted = true;
  EXPECT_EQ(access_with_token(Role::mark).roles_of(request), all_roles) << "an insecure listener";
  EXPECT_EQ(load({}).roles_of(HttpRequest{}), 0U) << "another address";
}

// For senders like Ceph RGW, whose endpoint URL may hold a user name and a password, but no header.
TEST(AccessTest, BasicAuthPassword_IsUsedAsTheToken) {
  const Access access = access_with_token(Role::mark);
  const auto roles = [&](const std::string& user_and_password) {
    return access.roles_of(with_token("Basic " + base::to_base64(user_and_password)));
  };
  EXPECT_EQ(roles("rgw:" + token), role_bit(Role::mark));
  EXPECT_EQ(roles(":" + token), role_bit(Role::mark));
  EXPECT_EQ(access.roles_of(with_token("basic  " + base::to_base64("x:" + token))), role_bit(Role::mark));
  for (const std::string& wrong :
       {token, token + ":", "rgw:" + token + "x", "rgw:x:" + token, std::string("rgw:"), std::string()}) {
    EXPECT_EQ(roles(wrong), 0U) << wrong;
  }
  EXPECT_EQ(access.roles_of(with_token("Basic not-base64!")), 0U);
  EXPECT_EQ(load({}).roles_of(with_token("Basic " + base::to_base64("rgw:"))), 0U) << "there are no tokens";
}

TEST(AccessTest, UnauthenticatedClient_Is401AndWrongRoleIs403) {
  const Access access = access_with_token(Role::mark);
  const auto code = [&](const HttpRequest& request) {
    const auto problem = access.refuse(request, role_bit(Role::admin));
    return problem ? problem->status : 0;
  };
  EXPECT_EQ(code(with_token("")), 401U);
  EXPECT_EQ(code(with_token("Bearer nobody-knows-this")), 401U);
  EXPECT_EQ(code(with_token("Bearer " + token)), 403U);
  HttpRequest request;
  request.caller.has_certificate = true;
  EXPECT_EQ(code(request), 403U);
  request = {};
  request.caller.unix_peer = UnixPeer{65'534, {65'534}};
  EXPECT_EQ(code(request), 403U);
  request = {};
  request.caller.marks_without_tokens = true;
  EXPECT_EQ(load({}).refuse(request, role_bit(Role::admin)).value().status, 401U) << "a browser may sign in";
  request = {};
  request.caller.is_trusted = true;
  EXPECT_EQ(code(request), 0U);
}

TEST(AccessTest, UnixSocket_RolesFollowUserAndGroup) {
  HttpRequest request;
  request.caller.unix_peer = UnixPeer{65'534, {65'534, 7}};
  EXPECT_EQ(load({}).roles_of(request), role_bit(Role::mark) | role_bit(Role::read));
  config::Config::Auth auth;
  auth.unix_peers = {{.user = "root", .role = Role::mark}};
  EXPECT_EQ(load(auth).roles_of(request), 0U) << "with rules, only those they name";
  auth.unix_peers = {{.user = "nobody", .role = Role::mark}, {.group = "lp", .role = Role::read}};
  EXPECT_EQ(load(auth).roles_of(request), role_bit(Role::mark) | role_bit(Role::read));
  for (const uid_t user : {uid_t{0}, ::geteuid()}) {
    request.caller.unix_peer = UnixPeer{user, {}};
    EXPECT_EQ(load(auth).roles_of(request), all_roles) << user;
  }
  auth.unix_peers = {{.user = "no-such-user-anywhere", .role = Role::mark}};
  EXPECT_FALSE(Access::load(auth));
}

TEST(AccessTest, Certificate_RolesFollowItsNames) {
  config::Config::Auth auth;
  auth.certificates = {{.name = "*.nodes.example", .role = Role::peer},
                       {.name = "backup.example", .role = Role::read}};
  const Access access = load(auth);
  const auto roles = [&](std::vector<std::string> names) {
    HttpRequest request;
    request.caller.has_certificate = true;
    request.caller.certificate_names = std::move(names);
    return access.roles_of(request);
  };
  EXPECT_EQ(roles({"a.nodes.example"}), role_bit(Role::peer));
  EXPECT_EQ(roles({"A.Nodes.Example"}), role_bit(Role::peer));
  EXPECT_EQ(roles({"backup.example", "a.nodes.example"}), role_bit(Role::peer) | role_bit(Role::read));
  EXPECT_EQ(roles({"nodes.example"}), 0U);
  EXPECT_EQ(roles({"a.nodes.example.evil"}), 0U);
  EXPECT_EQ(roles({}), 0U);
}

}  // namespace
}  // namespace spoor::daemon
