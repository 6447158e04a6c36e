// The credentials that this node presents to other daemons, and those with which it verifies them.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/endpoint.h"
#include "base/error.h"

namespace spoor::peer {

struct Credentials {
  std::string token;                               // secret; empty: none is sent
  std::shared_ptr<boost::asio::ssl::context> tls;  // for https
  bool has_own_ca = false;                         // `tls` trusts only the operator's authorities
  // The endpoints that the operator named (Endpoint::to_string()); none: the token is sent to all. An address
  // that only DNS or etcd lists can belong to any host.
  std::optional<std::set<std::string>> trusted_urls = {};
  // Why there is no token if one may be configured: the detail of a 401 response.
  std::string absence = {};

  // Whether the token may be sent to the endpoint: a Unix socket, an endpoint that the operator named, or one
  // whose identity the operator's own authority proves.
  bool sends_token_to(const base::Endpoint& endpoint) const;
};

// TLS 1.2 and above; always verifies the certificate of the other end. If a file can't be used, fails and
// names it.
base::Result<std::shared_ptr<boost::asio::ssl::context>> make_tls_client(const base::TlsClientFiles& files);

base::Result<Credentials> make_credentials(std::string token, const std::optional<base::TlsClientFiles>& tls);

}  // namespace spoor::peer
