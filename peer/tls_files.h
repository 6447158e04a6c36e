// Certificates and keys from files, for both ends of TLS.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::peer {

// What this end shows: a certificate, the intermediate ones behind it, and its key, in PEM. A key with a
// passphrase is refused rather than asked for on a terminal. Fails, naming the file, where one can't be used
// or they do not fit each other.
base::Result<> show_certificate(boost::asio::ssl::context& context, const std::filesystem::path& certificate,
                                const std::filesystem::path& key);

// Whether one end refused the other's certificate. With TLS 1.3 a client may learn of it when it reads.
bool is_certificate_refused(const boost::system::error_code& error);

// Why TLS failed, in words: for a certificate, which end refused whose, and why.
std::string tls_failure(SSL* connection, const boost::system::error_code& error);

// When the context's own certificate ends to be valid; nothing where it has none.
std::optional<base::WallTime> certificate_valid_until(const boost::asio::ssl::context& context);

// When the last of the authorities that believe() read does.
std::optional<base::WallTime> authorities_valid_until(const boost::asio::ssl::context& context);

// Whom this end believes. `what` names the file in messages.
base::Result<> believe(boost::asio::ssl::context& context, const char* what, const std::filesystem::path& ca);

}  // namespace spoor::peer
