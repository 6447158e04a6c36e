// Who may do what: tokens, certificates, users at the Unix socket, and their roles.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "daemon/http_message.h"
#include "daemon/problem.h"

namespace spoor::daemon {

// A set of config::Role, a bit each.
using Roles = unsigned;

constexpr Roles role_bit(config::Role role) { return 1U << static_cast<unsigned>(role); }

inline constexpr Roles all_roles = role_bit(config::Role::mark) | role_bit(config::Role::read) |
                                   role_bit(config::Role::peer) | role_bit(config::Role::admin);

// At the Unix socket, where auth.unix says nothing: whoever may open it (root and the daemon's own user may
// do all in any case).
inline constexpr Roles default_unix_roles = role_bit(config::Role::mark) | role_bit(config::Role::read);

// Holds tokens as their SHA-256 only, and compares them in constant time.
//
// Immutable once it is loaded; thread-safe.
class Access {
 public:
  using Digest = std::array<unsigned char, 32>;

  // Fails where a token can't be read, or a user or group is unknown; the message holds no token.
  static base::Result<Access> load(const config::Config::Auth& auth);

  // False where the caller may do all without saying who he is.
  bool asks_for_credentials(const Caller& caller) const;

  // What the caller may do, by who he is on this connection and by the token he shows: as Bearer, or for
  // senders that know user names and passwords only, as the password of Basic, whatever the user.
  Roles roles_of(const HttpRequest& request) const;

  // Who sends the request, for figures: "token NAME", "certificate NAME", "uid 1000", or "anonymous", which a
  // caller with an unknown token is.
  std::string identity_of(const HttpRequest& request) const;

  // The same for the log; of an unknown token the first digits of its SHA-256.
  std::string credential_of(const HttpRequest& request) const;

  // Why he may not use what is for `allowed` roles: 401 where nothing tells who he is, else 403.
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

// Fails where this machine does not know the group.
base::Result<gid_t> group_id(const std::string& name);

}  // namespace spoor::daemon
