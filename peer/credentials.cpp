#include "peer/credentials.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>
#include <utility>

namespace spoor::peer {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

base::Error unusable(const char* what, const std::filesystem::path& file, const error_code& error) {
  return {static_cast<std::error_code>(error),
          fmt::format("cannot use the {} {}: {}", what, file.native(), error.message())};
}

}  // namespace

base::Result<std::shared_ptr<ssl::context>> make_tls_client(const TlsFiles& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code error;
  context->set_verify_mode(ssl::verify_peer, error);
  // A key with a passphrase is refused rather than asked for on a terminal.
  context->set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); },
                                 error);
  if (files.ca.empty()) {
    context->set_default_verify_paths(error);
    if (error) return unusable("authorities of", "the system", error);
  } else {
    context->load_verify_file(files.ca.native(), error);
    if (error) return unusable("ca", files.ca, error);
  }
  if (files.certificate.empty()) return context;
  context->use_certificate_chain_file(files.certificate.native(), error);
  if (error) return unusable("certificate", files.certificate, error);
  context->use_private_key_file(files.key.native(), ssl::context::pem, error);
  if (error) return unusable("key", files.key, error);
  if (SSL_CTX_check_private_key(context->native_handle()) != 1) {  // of another kind than the certificate's
    error = error_code(static_cast<int>(::ERR_get_error()), boost::asio::error::get_ssl_category());
    return unusable("key", files.key, error);
  }
  return context;
}

base::Result<Credentials> make_credentials(std::string token, const std::optional<TlsFiles>& tls) {
  Credentials credentials{std::move(token), nullptr};
  if (tls) {
    auto context = make_tls_client(*tls);
    if (!context) return context.error();
    credentials.tls = *std::move(context);
  }
  return credentials;
}

}  // namespace spoor::peer
