// Access control: tokens, certificates, users at the Unix socket, and their roles.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "daemon/http/http_message.h"
#include "daemon/http/problem.h"

namespace spoor::daemon {

// A set of config::Role, a bit each.
using Roles = unsigned;

constexpr Roles role_bit(config::Role role) { return 1U << static_cast<unsigned>(role); }

inline constexpr Roles all_roles = role_bit(config::Role::mark) | role_bit(config::Role::read) |
                                   role_bit(config::Role::peer) | role_bit(config::Role::admin);

// Of every user who can open the Unix socket, if auth.unix is empty (root and the daemon's own user have all
// roles in any case).
inline constexpr Roles default_unix_roles = role_bit(config::Role::mark) | role_bit(config::Role::read);

// Holds tokens as their SHA-256 only, and compares them in constant time.
//
// Immutable once it is loaded; thread-safe.
class Access {
 public:
  using Digest = std::array<unsigned char, 32>;

  // Fails if a token can't be read, or a user or group is unknown; the message holds no token.
  static base::Result<Access> load(const config::Config::Auth& auth);

  // False if the caller has all roles without credentials.
  bool asks_for_credentials(const Caller& caller) const;

  // The roles of the caller, by the connection and by the token in the request: as Bearer or, for senders
  // that support user names and passwords only, as the password of Basic, with any user name.
  Roles roles_of(const HttpRequest& request) const;

  // The identity of the caller, for figures: "token NAME", "certificate NAME", "uid 1000", or "anonymous",
  // also for a caller with an unknown token.
  std::string identity_of(const HttpRequest& request) const;

  // The same for the log; for an unknown token the first digits of its SHA-256.
  std::string credential_of(const HttpRequest& request) const;

  // Why the caller may not use a route for the roles `allowed`: 401 if it has no identity, else 403.
  std::optional<Problem> refuse(const HttpRequest& request, Roles allowed) const;

 private:
  struct Token {
    std::string name;
    Digest sha256{};
    Roles roles = 0;
  };
  struct UnixRule {
    std::optional<uid_t> user;
    std::optional<gid_t> group;
    Roles roles = 0;
  };
  struct CertificateRule {
    std::string name;  // a glob
    Roles roles = 0;
  };

  Roles roles_of_token(const Digest& shown) const;
  std::string name_of_token(const Digest& shown) const;
  Roles roles_of_unix_peer(const UnixPeer& peer) const;
  Roles roles_of_certificate(const std::vector<std::string>& names) const;

  std::vector<Token> tokens_;
  std::vector<UnixRule> unix_rules_;
  std::vector<CertificateRule> certificate_rules_;
};

// Fails if the group does not exist on this machine.
base::Result<gid_t> group_id(const std::string& name);

}  // namespace spoor::daemon
