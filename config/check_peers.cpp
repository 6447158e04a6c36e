// Checks `peers` and `auth`. Messages on `auth`, `peers.token_file` and `peers.tls` do not quote values: a
// value may be a secret in the wrong place.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/check.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "config/units.h"

namespace spoor::config {
namespace {

constexpr std::size_t prefix_bytes_max = 128;
constexpr std::size_t endpoints_max = 64;
constexpr std::chrono::milliseconds ttl_most = std::chrono::minutes(10);
constexpr std::size_t sha256_digits = 64;
constexpr std::string_view roles = "expected \"mark\", \"read\", \"peer\" or \"admin\"";

}  // namespace

void check_secret_file(const std::string& key, const std::filesystem::path& file, Problems& problems) {
  if (file.empty()) return;
  if (const auto why = secret_file_problem(file)) add(problems, key, *why);
}

void check_tls_client(const std::string& key, const PeerTls& tls, Problems& problems) {
  check_secret_file(key + ".ca", tls.ca, problems);
  check_secret_file(key + ".certificate", tls.certificate, problems);
  check_secret_file(key + ".key", tls.key, problems);
  if (tls.certificate.empty() != tls.key.empty()) {
    add(problems, key, "a 'certificate' and its 'key' are needed, or neither");
  }
}

bool is_name(const std::string& text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(allowed) == std::string::npos;
}

namespace {

void check_etcd_endpoints(const Etcd& etcd, Problems& problems) {
  const std::string list = "peers.etcd.endpoints";
  if (etcd.endpoints.empty() || etcd.endpoints.size() > endpoints_max) {
    add(problems, list, fmt::format("expected 1 to {}, such as [\"http://127.0.0.1:2379\"]", endpoints_max));
  }
  if (etcd.tls) check_tls_client("peers.etcd.tls", *etcd.tls, problems);
  check_secret_file("peers.etcd.password_file", etcd.password_file, problems);
  if (etcd.user.empty() != etcd.password_file.empty()) {
    add(problems, "peers.etcd", "a 'user' and its 'password_file' are needed, or neither");
  }
  const bool is_plain = !std::ranges::all_of(
      etcd.endpoints, [](const base::Endpoint& each) { return each.is_tls || each.is_unix(); });
  if (is_plain && etcd.tls) {
    add(problems, list, "with 'tls' each endpoint has the form https://HOST:PORT or unix:/PATH");
  }
}

bool is_prefix(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  return !text.empty() && text.size() <= prefix_bytes_max && !text.starts_with('/') && !text.ends_with('/') &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

void check_times(const Etcd& etcd, Problems& problems) {
  // The time to live of an etcd lease is in whole seconds.
  if (etcd.ttl > ttl_most || etcd.ttl % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    add(problems, "peers.etcd.ttl",
        fmt::format("{} is wrong: expected whole seconds, at most {}", in_quotes(format_duration(etcd.ttl)),
                    format_duration(ttl_most)));
  }
  if (etcd.forget_after < 3 * etcd.ttl) {
    add(problems, "peers.etcd.forget_after",
        fmt::format(
            "{} is too short: a node that restarts would be forgotten; expected at least three times the ttl",
            in_quotes(format_duration(etcd.forget_after))));
  }
}

// Whether there are listeners on `port`, and all of them expect TLS.
bool speaks_only_tls(const Config& config, std::uint16_t port) {
  const auto is_on_port = [&](const Listener& each) { return each.unix_path.empty() && each.port == port; };
  return std::ranges::any_of(config.listen, is_on_port) &&
         std::ranges::all_of(config.listen,
                             [&](const Listener& each) { return !is_on_port(each) || each.tls.has_value(); });
}

void check_url(const Config& config, Problems& problems) {
  const std::string key = "peers.etcd.url";
  const std::string& url = config.peers.etcd->url;
  if (url.empty()) {
    if (advertised_url(config)) return;
    add(problems, key,
        "is required, because no listener has a fixed port and an address that other nodes reach (neither "
        "loopback nor a wildcard): such as \"http://10.0.0.1:7420\"");
    return;
  }
  const auto endpoint = base::parse_endpoint(url);
  if (!endpoint) return add(problems, key, endpoint.error().message);
  if (!endpoint->is_tls && !endpoint->is_unix() && speaks_only_tls(config, endpoint->port)) {
    add(problems, key,
        fmt::format("{} is wrong: the listener on port {} expects TLS; give an https:// URL", in_quotes(url),
                    endpoint->port));
  }
}

void check_etcd(const Config& config, const Etcd& etcd, Problems& problems) {
  check_etcd_endpoints(etcd, problems);
  if (!is_prefix(etcd.prefix)) {
    add(problems, "peers.etcd.prefix",
        fmt::format("{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ - /, no / at either end",
                    in_quotes(etcd.prefix), prefix_bytes_max));
  }
  check_times(etcd, problems);
  check_url(config, problems);
}

bool is_sha256(const std::string& text) {
  return text.size() == sha256_digits &&
         text.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
}

void check_token(const std::string& key, const Token& token, Problems& problems) {
  if (!is_name(token.name)) {
    add(problems, key + ".name",
        "a token needs a name, which logs and metrics show: 1 to 64 of A-Z a-z 0-9 . _ -");
  }
  if (token.role == Role::none) add(problems, key + ".role", roles);
  if (token.sha256.empty() == token.file.empty()) {
    add(problems, key, "expected either 'file', which contains the token, or its 'sha256', and not both");
  } else if (!token.sha256.empty() && !is_sha256(token.sha256)) {
    add(problems, key + ".sha256",
        "expected the SHA-256 of the token, 64 hexadecimal digits: printf %s TOKEN | sha256sum");
  } else if (const auto why = secret_file_problem(token.file); token.sha256.empty() && why) {
    add(problems, key + ".file", *why);
  }
}

}  // namespace

void check_peers_and_auth(const Config& config, Problems& problems) {
  if (config.peers.etcd) check_etcd(config, *config.peers.etcd, problems);
  const Config::Auth& auth = config.auth;
  for (std::size_t i = 0; i < auth.tokens.size(); ++i) {
    check_token(fmt::format("auth.tokens[{}]", i), auth.tokens[i], problems);
  }
  for (std::size_t i = 0; i < auth.unix_peers.size(); ++i) {
    const std::string key = fmt::format("auth.unix[{}]", i);
    const UnixRule& rule = auth.unix_peers[i];
    if (rule.user.empty() == rule.group.empty()) add(problems, key, "expected either 'user' or 'group'");
    if (rule.role == Role::none) add(problems, key + ".role", roles);
  }
  for (std::size_t i = 0; i < auth.certificates.size(); ++i) {
    const std::string key = fmt::format("auth.certificates[{}]", i);
    const CertificateRule& rule = auth.certificates[i];
    if (rule.name.empty()) add(problems, key + ".name", "expected a name, such as \"*.nodes.example\"");
    if (rule.role == Role::none) add(problems, key + ".role", roles);
  }
  check_secret_file("peers.token_file", config.peers.token_file, problems);
  if (config.peers.tls) check_tls_client("peers.tls", *config.peers.tls, problems);
}

}  // namespace spoor::config
