// Files that hold a token, a key or a certificate: named by their path, or as "credential:NAME", a credential
// that systemd gave the service (LoadCredential= in its unit).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "config/config.h"

namespace spoor::config {

// Why `setting` names no such file, or nothing.
std::optional<std::string> secret_file_problem(const std::filesystem::path& setting);

// Whether it is a credential, and systemd gave this process none.
bool is_credential_elsewhere(const std::filesystem::path& setting);

// Where the file is; "" for an empty setting. Fails for a credential where systemd gave none
// (CREDENTIALS_DIRECTORY is not set).
base::Result<std::filesystem::path> secret_file(const std::filesystem::path& setting);

// The token in such a file: its one line. Fails where it can't be read, or is no token.
base::Result<std::string> read_token(const std::filesystem::path& setting);

// What `peers` in the configuration says of this node and of whom it believes, read and resolved.
struct PeerSecrets {
  std::string token;           // empty: none
  std::optional<PeerTls> tls;  // paths of files
};
base::Result<PeerSecrets> peer_secrets(const Config::Peers& peers);

}  // namespace spoor::config
