// TLS of the daemon's listeners, with OpenSSL: version 1.2 and above, no resumption, no renegotiation.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/error.h"

namespace spoor::daemon {

// The certificate of a listener, and the authorities of the client certificates that it accepts. Used on the
// main thread, except for context().
class TlsServer {
 public:
  struct Files {
    std::filesystem::path certificate;  // PEM; followed by the intermediate certificates
    std::filesystem::path key;          // PEM, without a passphrase
    std::filesystem::path client_ca;    // PEM; empty: no client certificate is requested
  };

  // Fails with the name of the file if a file can't be read or the key does not match the certificate.
  static base::Result<std::shared_ptr<TlsServer>> load(Files files);

  // Reads the files again, for later connections. After a failure nothing has changed. Fails also if the new
  // certificate has expired at `now` and the one in use has not.
  base::Result<> reload(base::WallTime now);

  // The expiry of the certificate.
  base::WallTime valid_until() const;

  // A message with the file and the time of expiry if the certificate has expired at `now`.
  std::optional<std::string> expiry(base::WallTime now) const;

  // For one connection. A client need not send a certificate; an invalid one fails the handshake.
  // Thread-safe.
  std::shared_ptr<boost::asio::ssl::context> context() const {
    const std::scoped_lock lock(mutex_);
    return context_;
  }

 private:
  TlsServer(Files files, std::shared_ptr<boost::asio::ssl::context> context)
      : files_(std::move(files)), context_(std::move(context)) {}

  const Files files_;
  mutable std::mutex mutex_;  // of context_
  std::shared_ptr<boost::asio::ssl::context> context_;
};

}  // namespace spoor::daemon
