#include "daemon/api/access.h"

#include <fmt/core.h>
#include <fnmatch.h>
#include <grp.h>
#include <openssl/crypto.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <boost/algorithm/hex.hpp>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/asio/ip/address.hpp>

#include "base/base64.h"
#include "base/printable.h"
#include "config/secret_file.h"
#include "peer/http/credentials.h"

namespace spoor::daemon {
namespace {

using boost::algorithm::iequals;
using boost::algorithm::istarts_with;

constexpr std::size_t account_bytes_max = std::size_t{1} << 20U;  // of an entry in the user or group database

base::Error unknown_account(const char* what, const std::string& name) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("this machine knows no {} '{}' (names, not numbers)", what, name)};
}

base::Result<uid_t> user_id(const std::string& name) {
  std::vector<char> text(account_bytes_max);
  passwd entry{};
  passwd* found = nullptr;
  ::getpwnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr) return unknown_account("user", name);
  return entry.pw_uid;
}

// The credentials after the scheme, if it is this one.
std::optional<std::string_view> credentials_of(std::string_view authorization, std::string_view scheme) {
  if (!istarts_with(authorization, scheme)) return std::nullopt;
  authorization.remove_prefix(scheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

// RFC 6750, section 2.1, and RFC 7617, section 2.
std::optional<std::string> token_text(std::string_view authorization) {
  if (const auto token = credentials_of(authorization, "Bearer ")) return std::string(*token);
  const auto basic = credentials_of(authorization, "Basic ");
  const auto user_and_password = basic ? base::from_base64(*basic) : std::nullopt;
  const std::size_t colon = user_and_password ? user_and_password->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  return user_and_password->substr(colon + 1);
}

std::optional<Access::Digest> digest_of_token(const std::string& authorization) {
  const auto token = token_text(authorization);
  if (!token) return std::nullopt;
  return peer::sha256(*token);
}

// By the connection alone.
std::string label_of(const Caller& caller) {
  if (!caller.certificate_names.empty())
    return "certificate " + base::printable(caller.certificate_names.front());
  if (caller.has_certificate) return "certificate without a name";
  if (caller.unix_peer) return fmt::format("uid {}", caller.unix_peer->user);
  return "anonymous";
}

// Of a Host field: without its port, and without the brackets of an IPv6 address.
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  const std::size_t port = host.find(':');
  if (port != host.rfind(':')) return host;  // an IPv6 address as it is
  host = host.substr(0, port);
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_own(std::string_view host, std::string_view node) {
  const std::string_view name = name_of(host);
  boost::system::error_code is_no_address;
  static_cast<void>(boost::asio::ip::make_address(std::string(name), is_no_address));
  return !is_no_address || iequals(name, "localhost") || iequals(name, node);
}

bool is_same_site(std::string_view origin, std::string_view host) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && iequals(origin.substr(scheme + 3), host);
}

}  // namespace

base::Result<gid_t> group_id(const std::string& name) {
  std::vector<char> text(account_bytes_max);
  group entry{};
  group* found = nullptr;
  ::getgrnam_r(name.c_str(), &entry, text.data(), text.size(), &found);
  if (found == nullptr) return unknown_account("group", name);
  return entry.gr_gid;
}

base::Result<Access> Access::load(const config::Config::Auth& auth) {
  Access access;
  for (const config::Token& token : auth.tokens) {
    Token known{base::printable(token.name), {}, role_bit(token.role)};
    if (!token.sha256.empty()) {
      boost::algorithm::unhex(token.sha256, known.sha256.begin());
    } else {
      const auto text = config::read_token(token.file);
      if (!text) return text.error();
      known.sha256 = peer::sha256(*text);
    }
    access.tokens_.push_back(known);
  }
  for (std::size_t i = 0; i < auth.unix_peers.size(); ++i) {
    const config::UnixRule& rule = auth.unix_peers[i];
    UnixRule known{std::nullopt, std::nullopt, role_bit(rule.role)};
    const auto failed = [&](const base::Error& error) {
      return base::wrap(fmt::format("auth.unix[{}]", i), error);
    };
    if (!rule.user.empty()) {
      const auto id = user_id(rule.user);
      if (!id) return failed(id.error());
      known.user = *id;
    } else {
      const auto id = group_id(rule.group);
      if (!id) return failed(id.error());
      known.group = *id;
    }
    access.unix_rules_.push_back(known);
  }
  for (const config::CertificateRule& rule : auth.certificates) {
    access.certificate_rules_.push_back({rule.name, role_bit(rule.role)});
  }
  return access;
}

bool Access::asks_for_credentials(const Caller& caller) const {
  return !caller.is_trusted && !(caller.marks_without_tokens && tokens_.empty());
}

Roles Access::roles_of(const HttpRequest& request) const {
  const Caller& caller = request.caller;
  if (caller.is_trusted) return all_roles;
  if (!asks_for_credentials(caller)) return default_loopback_roles;
  Roles roles = 0;
  if (!tokens_.empty()) {
    if (const auto shown = digest_of_token(request.authorization)) roles |= roles_of_token(*shown);
  }
  if (caller.unix_peer) roles |= roles_of_unix_peer(*caller.unix_peer);
  if (caller.has_certificate) roles |= roles_of_certificate(caller.certificate_names);
  return roles;
}

std::optional<Problem> Access::refuse(const HttpRequest& request, Roles allowed) const {
  if ((roles_of(request) & allowed) != 0) return std::nullopt;
  const bool is_known = token_of(request) || request.caller.unix_peer || request.caller.has_certificate;
  if (is_known) {
    return Problem{403, "forbidden", "your role does not allow this; see auth in the daemon's configuration"};
  }
  if (!asks_for_credentials(request.caller)) {
    return Problem{401, "unauthorized",
                   "a client without credentials may only mark here: use the Unix socket of the daemon, or "
                   "set auth.tokens in its configuration and send a token"};
  }
  return Problem{401, "unauthorized",
                 request.authorization.empty()
                     ? "authentication required: send Authorization: Bearer TOKEN, or a client certificate"
                     : "the token is not known here"};
}

std::string Access::identity_of(const HttpRequest& request) const {
  const auto shown = tokens_.empty() ? std::nullopt : digest_of_token(request.authorization);
  const std::string name = shown ? name_of_token(*shown) : "";
  return name.empty() ? label_of(request.caller) : "token " + name;
}

std::string Access::credential_of(const HttpRequest& request) const {
  const auto shown = digest_of_token(request.authorization);
  if (!shown || !name_of_token(*shown).empty()) return identity_of(request);
  // Enough to find the token in a configuration, too little to find out the token.
  return fmt::format("unknown token, SHA-256 {:02x}{:02x}{:02x}{:02x}...", (*shown)[0], (*shown)[1],
                     (*shown)[2], (*shown)[3]);
}

std::optional<Access::Digest> Access::token_of(const HttpRequest& request) const {
  const auto shown = digest_of_token(request.authorization);
  return shown && roles_of_token(*shown) != 0 ? shown : std::nullopt;
}

// Empty if the token is unknown. The time taken reveals only what the caller knows: the digest of its token.
std::string Access::name_of_token(const Digest& shown) const {
  for (const Token& known : tokens_) {
    if (CRYPTO_memcmp(shown.data(), known.sha256.data(), shown.size()) == 0) return known.name;
  }
  return {};
}

// Compares digests rather than tokens, and all of them, so that the time taken reveals nothing about either.
Roles Access::roles_of_token(const Digest& shown) const {
  Roles roles = 0;
  for (const Token& known : tokens_) {
    if (CRYPTO_memcmp(shown.data(), known.sha256.data(), shown.size()) == 0) roles |= known.roles;
  }
  return roles;
}

Roles Access::roles_of_unix_peer(const UnixPeer& peer) const {
  if (peer.user == 0 || peer.user == ::geteuid()) return all_roles;
  if (unix_rules_.empty()) return default_unix_roles;
  Roles roles = 0;
  for (const UnixRule& rule : unix_rules_) {
    const bool is_his = (rule.user && *rule.user == peer.user) ||
                        (rule.group && std::ranges::find(peer.groups, *rule.group) != peer.groups.end());
    if (is_his) roles |= rule.roles;
  }
  return roles;
}

Roles Access::roles_of_certificate(const std::vector<std::string>& names) const {
  Roles roles = 0;
  for (const CertificateRule& rule : certificate_rules_) {
    const bool is_his = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
      return ::fnmatch(rule.name.c_str(), name.c_str(), FNM_CASEFOLD) == 0;
    });
    if (is_his) roles |= rule.roles;
  }
  return roles;
}

std::optional<Problem> refuse_cross_site(const HttpRequest& request, bool asks_for_credentials,
                                         std::string_view node) {
  if (request.caller.unix_peer) return std::nullopt;
  if (asks_for_credentials && istarts_with(request.authorization, "Bearer ")) return std::nullopt;
  if (!request.origin.empty() && !is_same_site(request.origin, request.host)) {
    return Problem{403, "foreign_origin",
                   fmt::format("a page of '{}' may not ask for this; send no Origin, or a token",
                               base::printable(request.origin))};
  }
  if (asks_for_credentials || request.caller.is_tls || request.host.empty()) return std::nullopt;
  // Peers reach an insecure listener by names that this node does not know, and send no Origin.
  const bool may_be_peer = !request.caller.marks_without_tokens && request.origin.empty();
  if (may_be_peer || is_own(request.host, node)) return std::nullopt;
  return Problem{403, "foreign_host",
                 fmt::format("'{}' is no name of this node; ask for it by its IP address, as localhost or as "
                             "'{}', or set auth.tokens",
                             base::printable(request.host), node)};
}

}  // namespace spoor::daemon
