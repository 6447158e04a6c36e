#include "peer/http/credentials.h"

#include <fmt/core.h>
#include <openssl/asn1.h>
#include <openssl/err.h>
#include <openssl/rand.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <algorithm>
#include <boost/asio/ssl/error.hpp>
#include <chrono>
#include <ctime>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

namespace spoor::peer {
namespace {

namespace ssl = boost::asio::ssl;
using boost::system::error_code;

base::Error unusable(const char* what, const std::filesystem::path& file, const error_code& error,
                     std::string_view why = {}) {
  return {static_cast<std::error_code>(error),
          fmt::format("cannot use the {} {}: {}", what, file.native(), why.empty() ? error.message() : why)};
}

base::WallTime end_of(const X509* certificate) {
  std::tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &end);
  // Limited to the range of WallTime: certificates without expiry are valid until the year 9999.
  const auto most = std::chrono::floor<std::chrono::seconds>(base::WallTime::max());
  return std::min(std::chrono::sys_seconds(std::chrono::seconds(::timegm(&end))), most);
}

}  // namespace

std::optional<base::WallTime> certificate_valid_until(const ssl::context& context) {
  auto* const native = const_cast<ssl::context&>(context).native_handle();
  const X509* const certificate = SSL_CTX_get0_certificate(native);
  if (certificate == nullptr) return std::nullopt;
  return end_of(certificate);
}

std::optional<base::WallTime> authorities_valid_until(const ssl::context& context) {
  auto* const native = const_cast<ssl::context&>(context).native_handle();
  std::optional<base::WallTime> last;
  const auto* const objects = X509_STORE_get0_objects(SSL_CTX_get_cert_store(native));
  for (int i = 0; i < sk_X509_OBJECT_num(objects); ++i) {
    const X509* const authority = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(objects, i));
    if (authority != nullptr) last = std::max(last.value_or(base::WallTime::min()), end_of(authority));
  }
  return last;
}

base::Result<> load_certificate(ssl::context& context, const std::filesystem::path& certificate,
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
    return unusable("key", key, error, *is_locked ? "it has a passphrase; use a key without one" : "");
  if (SSL_CTX_check_private_key(context.native_handle()) != 1) {  // does not match the certificate
    error = error_code(static_cast<int>(::ERR_get_error()), boost::asio::error::get_ssl_category());
    return unusable("key", key, error);
  }
  return {};
}

bool is_certificate_refused(const error_code& error) {
  if (error.category() != boost::asio::error::get_ssl_category()) return false;
  const auto code = static_cast<unsigned long>(error.value());
  if (ERR_GET_LIB(code) != ERR_LIB_SSL) return false;
  const int reason = ERR_GET_REASON(code);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return true;
  // An alert from the other end.
  for (const int alert : {SSL_AD_BAD_CERTIFICATE, SSL_AD_UNSUPPORTED_CERTIFICATE, SSL_AD_CERTIFICATE_REVOKED,
                          SSL_AD_CERTIFICATE_EXPIRED, SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
                          SSL_AD_CERTIFICATE_REQUIRED}) {
    if (reason == SSL_AD_REASON_OFFSET + alert) return true;
  }
  return false;
}

std::string tls_failure(SSL* connection, const error_code& error) {
  if (!is_certificate_refused(error)) return error.message();
  const bool is_server = SSL_is_server(connection) == 1;
  const int reason = ERR_GET_REASON(static_cast<unsigned long>(error.value()));
  if (reason != SSL_R_CERTIFICATE_VERIFY_FAILED) {
    return fmt::format("{} refuses the certificate of this {}: {}", is_server ? "the client" : "the server",
                       is_server ? "daemon" : "client",
                       SSL_alert_desc_string_long(reason - SSL_AD_REASON_OFFSET));
  }
  const long wrong = SSL_get_verify_result(connection);
  return fmt::format("this {} refuses the certificate of {}: {}", is_server ? "daemon" : "client",
                     is_server ? "the client" : "the server",
                     wrong == X509_V_ERR_HOSTNAME_MISMATCH ? "it is not for this name or address"
                                                           : X509_verify_cert_error_string(wrong));
}

base::Result<> load_authorities(ssl::context& context, const char* what, const std::filesystem::path& ca) {
  error_code error;
  context.load_verify_file(ca.native(), error);
  if (error) return unusable(what, ca, error);
  return {};
}

base::Result<base::WallTime> certificate_valid_until(const std::filesystem::path& certificate,
                                                     const std::filesystem::path& key) {
  ssl::context context(ssl::context::tls);
  if (!key.empty()) {
    if (const auto loaded = load_certificate(context, certificate, key); !loaded) return loaded.error();
  } else {
    error_code error;
    context.use_certificate_chain_file(certificate.native(), error);
    if (error) return unusable("certificate", certificate, error);
  }
  return certificate_valid_until(context).value();  // it was loaded
}

base::Result<base::WallTime> authorities_valid_until(const std::filesystem::path& ca) {
  ssl::context context(ssl::context::tls);
  if (const auto loaded = load_authorities(context, "ca", ca); !loaded) return loaded.error();
  return authorities_valid_until(context).value();  // a file without one is refused
}

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

std::vector<unsigned char> random_bytes(std::size_t count) {
  std::vector<unsigned char> bytes(count);
  if (RAND_bytes(bytes.data(), static_cast<int>(count)) != 1) throw std::bad_alloc();
  return bytes;
}

std::array<unsigned char, 32> sha256(std::string_view text) {
  std::array<unsigned char, 32> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

}  // namespace spoor::peer
