#include "peer/http/credentials.h"

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <utility>

#include "peer/http/tls_files.h"

namespace spoor::peer {
namespace ssl = boost::asio::ssl;

base::Result<std::shared_ptr<ssl::context>> make_tls_client(const base::TlsClientFiles& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  boost::system::error_code error;
  context->set_verify_mode(ssl::verify_peer, error);
  if (files.ca.empty()) {
    context->set_default_verify_paths(error);
    if (error) {
      return base::Error(
          static_cast<std::error_code>(error),
          fmt::format("cannot use the authorities that the system trusts: {}", error.message()));
    }
  } else if (const auto authorities = load_authorities(*context, "ca", files.ca); !authorities) {
    return authorities.error();
  }
  if (files.certificate.empty()) return context;
  if (const auto certificate = load_certificate(*context, files.certificate, files.key); !certificate)
    return certificate.error();
  return context;
}

bool Credentials::sends_token_to(const base::Endpoint& endpoint) const {
  if (token.empty()) return false;
  if (!trusted_urls || endpoint.is_unix() || (endpoint.is_tls && has_own_ca)) return true;
  return trusted_urls->contains(endpoint.to_string());
}

base::Result<Credentials> make_credentials(std::string token,
                                           const std::optional<base::TlsClientFiles>& tls) {
  Credentials credentials{.token = std::move(token), .tls = nullptr};
  if (tls) {
    auto context = make_tls_client(*tls);
    if (!context) return context.error();
    credentials.tls = *std::move(context);
    credentials.has_own_ca = !tls->ca.empty();
  }
  return credentials;
}

}  // namespace spoor::peer
