// The credentials that this node presents to other daemons, and those with which it verifies them; files of
// certificates and keys, for TLS clients and servers.
#pragma once

#include <array>
#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
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

// Loads the certificate that this end presents, with its intermediate certificates, and its key, in PEM. A
// key with a passphrase is refused; there is no prompt. If a file can't be used, or the key does not match
// the certificate, fails and names the file.
base::Result<> load_certificate(boost::asio::ssl::context& context, const std::filesystem::path& certificate,
                                const std::filesystem::path& key);

// Whether one end refused the certificate of the other. With TLS 1.3 a client may get this error when it
// reads.
bool is_certificate_refused(const boost::system::error_code& error);

// A message on why TLS failed: for a certificate, which end refused it, and why.
std::string tls_failure(SSL* connection, const boost::system::error_code& error);

// The end of validity of the context's own certificate; nullopt if it has none.
std::optional<base::WallTime> certificate_valid_until(const boost::asio::ssl::context& context);

// The latest end of validity among the authorities that load_authorities() loaded; nullopt if there are none.
std::optional<base::WallTime> authorities_valid_until(const boost::asio::ssl::context& context);

// The same for files. Without a `key`, only the certificate is read. Fail as the functions that load them.
base::Result<base::WallTime> certificate_valid_until(const std::filesystem::path& certificate,
                                                     const std::filesystem::path& key);
base::Result<base::WallTime> authorities_valid_until(const std::filesystem::path& ca);

// Loads the authorities that this end trusts. `what` names the file in messages.
base::Result<> load_authorities(boost::asio::ssl::context& context, const char* what,
                                const std::filesystem::path& ca);
// For a new secret. Throws std::bad_alloc if libcrypto has no randomness.
std::vector<unsigned char> random_bytes(std::size_t count);

std::array<unsigned char, 32> sha256(std::string_view text);

}  // namespace spoor::peer
