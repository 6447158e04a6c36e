// Certificates and keys from files, for both ends of TLS.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <filesystem>
#include <string>

#include "base/error.h"

namespace spoor::peer {

// What this end shows: a certificate, the intermediate ones behind it, and its key, in PEM. A key with a
// passphrase is refused rather than asked for on a terminal. Fails, naming the file, where one can't be used
// or they do not fit each other.
base::Result<> show_certificate(boost::asio::ssl::context& context, const std::filesystem::path& certificate,
                                const std::filesystem::path& key);

// Why a handshake failed: `error` and, where it was for the other end's certificate, what is wrong with that.
std::string handshake_failure(SSL* connection, const boost::system::error_code& error);

// Whom this end believes. `what` names the file in messages.
base::Result<> believe(boost::asio::ssl::context& context, const char* what, const std::filesystem::path& ca);

}  // namespace spoor::peer
