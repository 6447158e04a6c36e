// TLS of the daemon's listeners, with OpenSSL: version 1.2 and above, no resumption, no renegotiation.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::daemon {

// What a listener shows, and whom it believes. Lives on one thread.
class TlsServer {
 public:
  struct Files {
    std::filesystem::path certificate;  // PEM; with the intermediate ones behind it
    std::filesystem::path key;          // PEM, without a passphrase
    std::filesystem::path client_ca;    // PEM; empty: clients are not asked for a certificate
  };

  // Fails, naming the file, where one can't be read or does not fit the others.
  static base::Result<std::shared_ptr<TlsServer>> load(Files files);

  // Reads the files anew, for the connections from now on. After a failure all stays as it was. A
  // certificate that has expired at `now` is one where the one in use has not.
  base::Result<> reload(base::WallTime now);

  // Until when the certificate is valid.
  base::WallTime valid_until() const;

  // Where it is not valid any more at `now`: which one, and since when.
  std::optional<std::string> expiry(base::WallTime now) const;

  // For one connection. A client may come without a certificate; one that is not valid ends the handshake.
  std::shared_ptr<boost::asio::ssl::context> context() const { return context_; }

 private:
  TlsServer(Files files, std::shared_ptr<boost::asio::ssl::context> context)
      : files_(std::move(files)), context_(std::move(context)) {}

  const Files files_;
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace spoor::daemon
