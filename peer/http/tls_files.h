// Loads certificates and keys from files, for TLS clients and servers.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::peer {

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

}  // namespace spoor::peer
