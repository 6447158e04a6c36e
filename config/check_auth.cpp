// Checks `auth`, `peers.token_file` and `peers.tls`. Messages do not quote values: a value may be a secret in
// the wrong place.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "config/check.h"
#include "config/secret_file.h"

namespace spoor::config {
namespace {

constexpr std::size_t sha256_digits = 64;
constexpr std::string_view roles = "expected \"mark\", \"read\", \"peer\" or \"admin\"";

void add(Problems& problems, const std::string& key, std::string_view what) {
  problems.push_back({key, fmt::format("{}: {}", key, what)});
}

bool is_name(const std::string& text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= 64 && text.find_first_not_of(allowed) == std::string::npos;
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

void check_auth(const Config& config, Problems& problems) {
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
