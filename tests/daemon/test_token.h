// A token of which the configuration has only the SHA-256.
#pragma once

#include <memory>

#include "daemon/api/access.h"

namespace spoor::daemon {

inline constexpr const char* test_token = "a-token-of-twenty-two";
// printf %s a-token-of-twenty-two | sha256sum
inline constexpr const char* test_token_sha256 =
    "68f6a6bb6b0981723ceb3c28d02857e756a44e7878f96fcab0434d4ffacd18ed";

// With this token alone.
inline Access access_with_token(config::Role role) {
  config::Config::Auth auth;
  auth.tokens = {{.name = "a", .role = role, .sha256 = test_token_sha256}};
  return Access::load(auth).value();
}

}  // namespace spoor::daemon
