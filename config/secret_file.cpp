#include "config/secret_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string_view>

#include "base/printable.h"

namespace spoor::config {
namespace {

constexpr std::string_view credential = "credential:";
constexpr std::size_t token_bytes_min = 16;  // A shorter token can be guessed.
constexpr std::size_t token_bytes_max = 512;

base::Error bad_token(const std::filesystem::path& file, std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("the token in {} is invalid: {}", file.native(), why)};
}

// The one line of a file.
base::Result<std::string> read_line(const std::filesystem::path& file, std::string_view what) {
  errno = 0;
  std::ifstream stream(file, std::ios::binary);
  std::string text(token_bytes_max + 2, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && stream.gcount() == 0) {
    return base::system_error(errno, fmt::format("cannot read the {} in {}", what, file.native()));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// The characters that an Authorization header can contain (RFC 6750, section 2.1).
bool is_token_character(char c) {
  constexpr std::string_view others = "-._~+/=";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
}

base::Result<std::optional<PeerTls>> resolve(const std::optional<PeerTls>& setting) {
  if (!setting) return std::optional<PeerTls>();
  PeerTls tls;
  for (const auto part : {&PeerTls::ca, &PeerTls::certificate, &PeerTls::key}) {
    const auto file = secret_file(*setting.*part);
    if (!file) return file.error();
    tls.*part = *file;
  }
  return std::optional(std::move(tls));
}

// JSON holds no other text.
bool is_printable_utf8(std::string_view text) {
  const auto is_control = [](char c) { return c >= '\0' && c < ' '; };
  return base::is_utf8(text) && std::ranges::none_of(text, is_control);
}

base::Result<std::string> read_password(const std::filesystem::path& setting) {
  const auto file = secret_file(setting);
  if (!file) return file.error();
  auto text = read_line(*file, "password");
  if (!text) return text;
  if (text->empty() || text->size() > token_bytes_max || !is_printable_utf8(*text)) {
    return base::Error(
        std::make_error_code(std::errc::invalid_argument),
        fmt::format("the password in {} is invalid: it must be one line of 1 to {} bytes of UTF-8",
                    file->native(), token_bytes_max));
  }
  return text;
}

base::Result<ClientSecrets> client_secrets(base::Result<std::string> secret,
                                           const std::optional<PeerTls>& tls) {
  if (!secret) return secret.error();
  auto resolved = resolve(tls);
  if (!resolved) return resolved.error();
  return ClientSecrets{*std::move(secret), *std::move(resolved)};
}

}  // namespace

std::optional<std::string> secret_file_problem(const std::filesystem::path& setting) {
  const std::string_view text = setting.native();
  if (text.find('\0') != std::string_view::npos) return "it contains a NUL byte";
  if (!text.starts_with(credential)) {
    if (setting.is_absolute()) return std::nullopt;
    return "expected an absolute path, or \"credential:NAME\"";
  }
  const std::string_view name = text.substr(credential.size());
  if (name.empty() || name.find('/') != std::string_view::npos || name.starts_with('.')) {
    return "expected the name of a credential after \"credential:\"";
  }
  return std::nullopt;
}

bool is_credential_elsewhere(const std::filesystem::path& setting) {
  return setting.native().starts_with(credential) && !secret_file(setting);
}

base::Result<std::filesystem::path> secret_file(const std::filesystem::path& setting) {
  const std::string_view text = setting.native();
  if (!text.starts_with(credential)) return setting;
  const char* const directory = std::getenv("CREDENTIALS_DIRECTORY");
  if (directory == nullptr || *directory == '\0') {
    return base::Error(
        std::make_error_code(std::errc::no_such_file_or_directory),
        fmt::format("there is no {}: systemd passed no credentials (set LoadCredential= in the unit)", text));
  }
  return std::filesystem::path(directory) / text.substr(credential.size());
}

base::Result<std::string> read_token(const std::filesystem::path& setting) {
  const auto file = secret_file(setting);
  if (!file) return file.error();
  auto text = read_line(*file, "token");
  if (!text) return text;
  if (text->size() < token_bytes_min || text->size() > token_bytes_max) {
    return bad_token(*file,
                     fmt::format("it must have {} to {} characters", token_bytes_min, token_bytes_max));
  }
  if (!std::all_of(text->begin(), text->end(), is_token_character)) {
    return bad_token(*file, "it must be one line of A-Z a-z 0-9 - . _ ~ + / =");
  }
  return text;
}

base::Result<ClientSecrets> peer_secrets(const Config::Peers& peers) {
  return client_secrets(peers.token_file.empty() ? std::string() : read_token(peers.token_file), peers.tls);
}

base::Result<ClientSecrets> etcd_secrets(const Etcd& etcd) {
  return client_secrets(etcd.password_file.empty() ? std::string() : read_password(etcd.password_file),
                        etcd.tls);
}

base::Result<ClientSecrets> sink_secrets(const Sink& sink) {
  if (!sink.password_file.empty()) return client_secrets(read_password(sink.password_file), sink.tls);
  return client_secrets(sink.token_file.empty() ? std::string() : read_token(sink.token_file), sink.tls);
}

}  // namespace spoor::config
