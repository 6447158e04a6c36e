#include "config/secret_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <string_view>

namespace spoor::config {
namespace {

constexpr std::string_view credential = "credential:";
constexpr std::size_t token_bytes_min = 16;  // what is shorter can be guessed
constexpr std::size_t token_bytes_max = 512;

base::Error bad_token(const std::filesystem::path& file, std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("the token in {} is unfit: {}", file.native(), why)};
}

// What an Authorization header can carry (RFC 6750, section 2.1).
bool is_token_character(char c) {
  constexpr std::string_view others = "-._~+/=";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         others.find(c) != std::string_view::npos;
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
        fmt::format("there is no {}: systemd gave no credentials (set LoadCredential= in the unit)", text));
  }
  return std::filesystem::path(directory) / text.substr(credential.size());
}

base::Result<std::string> read_token(const std::filesystem::path& setting) {
  const auto file = secret_file(setting);
  if (!file) return file.error();
  errno = 0;
  std::ifstream stream(*file, std::ios::binary);
  std::string text(token_bytes_max + 2, '\0');
  stream.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!stream.eof() && stream.gcount() == 0) {
    return base::system_error(errno, fmt::format("cannot read the token in {}", file->native()));
  }
  text.resize(static_cast<std::size_t>(stream.gcount()));
  if (text.ends_with('\n')) text.pop_back();
  if (text.size() < token_bytes_min || text.size() > token_bytes_max) {
    return bad_token(*file,
                     fmt::format("it must have {} to {} characters", token_bytes_min, token_bytes_max));
  }
  if (!std::all_of(text.begin(), text.end(), is_token_character)) {
    return bad_token(*file, "it must be one line of A-Z a-z 0-9 - . _ ~ + / =");
  }
  return text;
}

base::Result<PeerSecrets> peer_secrets(const Config::Peers& peers) {
  PeerSecrets secrets;
  if (!peers.token_file.empty()) {
    auto token = read_token(peers.token_file);
    if (!token) return token.error();
    secrets.token = *std::move(token);
  }
  if (!peers.tls) return secrets;
  PeerTls& tls = secrets.tls.emplace();
  for (const auto part : {&PeerTls::ca, &PeerTls::certificate, &PeerTls::key}) {
    const auto file = secret_file(*peers.tls.*part);
    if (!file) return file.error();
    tls.*part = *file;
  }
  return secrets;
}

}  // namespace spoor::config
