// How this node shows other daemons who it is, and knows them.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/error.h"
#include "peer/endpoint.h"

namespace spoor::peer {

struct Credentials {
  std::string token;                               // secret; empty: none is shown
  std::shared_ptr<boost::asio::ssl::context> tls;  // for https
  bool has_own_ca = false;                         // `tls` believes no others than the operator's authorities
  // Of the endpoints that the operator named (Endpoint::to_string()); none: the token is shown to all. Else
  // an address that DNS or etcd alone names may be that of any host.
  std::optional<std::set<std::string>> trusted_urls = {};

  // Whether this end may show it the token: a Unix socket, one that the operator named, or one that proves by
  // the operator's own authority who it is.
  bool shows_token_to(const Endpoint& endpoint) const;
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
