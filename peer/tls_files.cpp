#include "peer/tls_files.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>
#include <string>

namespace spoor::peer {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

base::Error unusable(const char* what, const std::filesystem::path& file, const error_code& error) {
  return {static_cast<std::error_code>(error),
          fmt::format("cannot use the {} {}: {}", what, file.native(), error.message())};
}

}  // namespace

base::Result<> show_certificate(ssl::context& context, const std::filesystem::path& certificate,
                                const std::filesystem::path& key) {
  error_code error;
  context.set_password_callback([](std::size_t, ssl::context::password_purpose) { return std::string(); },
                                error);
  context.use_certificate_chain_file(certificate.native(), error);
  if (error) return unusable("certificate", certificate, error);
  context.use_private_key_file(key.native(), ssl::context::pem, error);
  if (error) return unusable("key", key, error);
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {  // of another kind than the certificate's
    error = error_code(static_cast<int>(::ERR_get_error()), boost::asio::error::get_ssl_category());
    return unusable("key", key, error);
  }
  return {};
}

base::Result<> believe(ssl::context& context, const char* what, const std::filesystem::path& ca) {
  error_code error;
  context.load_verify_file(ca.native(), error);
  if (error) return unusable(what, ca, error);
  return {};
}

}  // namespace spoor::peer
