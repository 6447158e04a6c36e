// Access control: tokens, certificates, users at the Unix socket, and their roles; requests that a
// browser sends for a page of another site, possibly without the user's knowledge.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "daemon/http/http_message.h"

namespace spoor::daemon {

// A set of config::Role, a bit each.
using Roles = unsigned;

constexpr Roles role_bit(config::Role role) { return 1U << static_cast<unsigned>(role); }

inline constexpr Roles all_roles = role_bit(config::Role::mark) | role_bit(config::Role::read) |
                                   role_bit(config::Role::peer) | role_bit(config::Role::admin);

// Of every process of this machine at a loopback address, while no tokens are configured.
inline constexpr Roles default_loopback_roles = role_bit(config::Role::mark);

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

  // False if the caller has a role without credentials.
  bool asks_for_credentials(const Caller& caller) const;

  // The roles of the caller, by the connection and by the token in the request: as Bearer or, for senders
  // that support user names and passwords only, as the password of Basic, with any user name.
  Roles roles_of(const HttpRequest& request) const;

  // The identity of the caller, for figures: "token NAME", "certificate NAME", "uid 1000", or "anonymous",
  // also for a caller with an unknown token.
  std::string identity_of(const HttpRequest& request) const;

  // The same for the log; for an unknown token the first digits of its SHA-256.
  std::string credential_of(const HttpRequest& request) const;

  // The token in the request, if it is known.
  std::optional<Digest> token_of(const HttpRequest& request) const;

  // None if the token is unknown.
  Roles roles_of_token(const Digest& shown) const;

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

  std::string name_of_token(const Digest& shown) const;
  Roles roles_of_unix_peer(const UnixPeer& peer) const;
  Roles roles_of_certificate(const std::vector<std::string>& names) const;

  std::vector<Token> tokens_;
  std::vector<UnixRule> unix_rules_;
  std::vector<CertificateRule> certificate_rules_;
};

// Fails if the group does not exist on this machine.
base::Result<gid_t> group_id(const std::string& name);

// The problem that a request may come from such a page; `asks_for_credentials` is that of Access. A page of
// another site has another Origin; one whose name was made to lead to this machine (DNS rebinding) has a Host
// that is neither an IP address, localhost nor `node`; over TLS the browser refuses that name's certificate.
// A request with a token, where one is required, is none of these: no browser adds a token by itself. Nor can
// a browser open a Unix socket.
std::optional<Problem> refuse_cross_site(const HttpRequest& request, bool asks_for_credentials,
                                         std::string_view node);

}  // namespace spoor::daemon
