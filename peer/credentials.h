// How this node shows other daemons who it is, and knows them.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/error.h"

namespace spoor::peer {

struct Credentials {
  std::string token;                               // secret; empty: none is shown
  std::shared_ptr<boost::asio::ssl::context> tls;  // for https
};

// In PEM; each may be empty.
struct TlsFiles {
  std::filesystem::path ca;           // empty: the authorities that the system trusts
  std::filesystem::path certificate;  // with `key`: what is shown to those who ask
  std::filesystem::path key;
};

// TLS 1.2 and above; the other end's certificate is always checked. Fails, naming the file, where one can't
// be used.
base::Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_client(const TlsFiles& files);

base::Result<Credentials> make_credentials(std::string token, const std::optional<TlsFiles>& tls);

}  // namespace spoor::peer
