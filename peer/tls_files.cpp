#include "peer/tls_files.h"

#include <fmt/core.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/error.hpp>
#include <memory>
#include <string>
#include <string_view>

namespace spoor::peer {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

base::Error unusable(const char* what, const std::filesystem::path& file, const error_code& error,
                     std::string_view why = {}) {
  return {static_cast<std::error_code>(error),
          fmt::format("cannot use the {} {}: {}", what, file.native(), why.empty() ? error.message() : why)};
}

}  // namespace

base::Result<> show_certificate(ssl::context& context, const std::filesystem::path& certificate,
                                const std::filesystem::path& key) {
  error_code error;
  const auto is_locked = std::make_shared<bool>(false);
  context.set_password_callback(
      [is_locked](std::size_t, ssl::context::password_purpose) {
        *is_locked = true;
        return std::string();
      },
      error);
  context.use_certificate_chain_file(certificate.native(), error);
  if (error) return unusable("certificate", certificate, error);
  context.use_private_key_file(key.native(), ssl::context::pem, error);
  if (error)
    return unusable("key", key, error,
                    *is_locked ? "it has a passphrase, which nobody can be asked for" : "");
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {  // of another kind than the certificate's
    error = error_code(static_cast<int>(::ERR_get_error()), boost::asio::error::get_ssl_category());
    return unusable("key", key, error);
  }
  return {};
}

std::string handshake_failure(SSL* connection, const error_code& error) {
  const auto code = static_cast<unsigned long>(error.value());
  const bool is_of_tls =
      error.category() == boost::asio::error::get_ssl_category() && ERR_GET_LIB(code) == ERR_LIB_SSL;
  if (!is_of_tls || ERR_GET_REASON(code) != SSL_R_CERTIFICATE_VERIFY_FAILED) return error.message();
  const long wrong = SSL_get_verify_result(connection);
  // The only check that is not OpenSSL's own is that of the name.
  const bool is_misnamed = wrong == X509_V_OK || wrong == X509_V_ERR_UNSPECIFIED;
  return fmt::format(
      "the certificate of the other end is not believed: {}",
      is_misnamed ? "it is not for this name or address" : X509_verify_cert_error_string(wrong));
}

base::Result<> believe(ssl::context& context, const char* what, const std::filesystem::path& ca) {
  error_code error;
  context.load_verify_file(ca.native(), error);
  if (error) return unusable(what, ca, error);
  return {};
}

}  // namespace spoor::peer
