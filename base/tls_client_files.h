#pragma once

#include <filesystem>

namespace spoor::base {

// The files of a TLS client, in PEM; each may be empty.
struct TlsClientFiles {
  std::filesystem::path ca = {};           // empty: the authorities that the system trusts
  std::filesystem::path certificate = {};  // with `key`: the certificate of the client
  std::filesystem::path key = {};

  bool operator==(const TlsClientFiles&) const = default;
};

}  // namespace spoor::base
