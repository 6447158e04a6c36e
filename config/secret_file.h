// Files that contain a token, a key or a certificate: an absolute path, or "credential:NAME" for a credential
// that systemd passes to the service (LoadCredential= in its unit).
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "config/config.h"

namespace spoor::config {

// Why `setting` has neither form; std::nullopt if it is valid.
std::optional<std::string> secret_file_problem(const std::filesystem::path& setting);

// Whether `setting` is a credential and systemd passed no credentials to this process.
bool is_credential_elsewhere(const std::filesystem::path& setting);

// The path of the file; "" for an empty setting. Fails for a credential if CREDENTIALS_DIRECTORY is not set.
base::Result<std::filesystem::path> secret_file(const std::filesystem::path& setting);

// Reads the token, which is the only line of the file. Fails if the file can't be read or contains no valid
// token.
base::Result<std::string> read_token(const std::filesystem::path& setting);

// The secrets of this node as a client of its peers or of etcd.
struct ClientSecrets {
  std::string secret;          // Token or password; empty: none.
  std::optional<PeerTls> tls;  // "credential:NAME" is replaced by the path of the file.
};
// Reads the token or password file and resolves the paths of the TLS files. Fails as read_token() and
// secret_file() do.
base::Result<ClientSecrets> peer_secrets(const Config::Peers& peers);
base::Result<ClientSecrets> etcd_secrets(const Etcd& etcd);
base::Result<ClientSecrets> sink_secrets(const Sink& sink);

}  // namespace spoor::config
