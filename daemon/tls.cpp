#include "daemon/tls.h"

#include <fmt/core.h>
#include <openssl/asn1.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/iso_time.h"
#include "peer/tls_files.h"

namespace spoor::daemon {
namespace {

namespace ssl = boost::asio::ssl;

base::Result<std::shared_ptr<ssl::context>> make_context(const TlsServer::Files& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // A resumed session would outlive the certificate it was opened with; connections stay open for long
  // anyway.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // idle connections are many
  if (const auto shown = peer::show_certificate(*context, files.certificate, files.key); !shown) {
    return shown.error();
  }
  if (files.client_ca.empty()) return context;
  if (const auto believed = peer::believe(*context, "client_ca", files.client_ca); !believed) {
    return believed.error();
  }
  // Clients choose a certificate by the names of these.
  SSL_CTX_set_client_CA_list(native, SSL_load_client_CA_file(files.client_ca.c_str()));
  boost::system::error_code error;
  context->set_verify_mode(ssl::verify_peer, error);
  return context;
}

std::string text_of(const ASN1_STRING* string) {
  const unsigned char* const data = ASN1_STRING_get0_data(string);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(string));
  return {reinterpret_cast<const char*>(data), size};
}

// "host\0.evil" is none.
void add_name(std::vector<std::string>& names, std::string name) {
  if (!name.empty() && name.find('\0') == std::string::npos) names.push_back(std::move(name));
}

std::vector<std::string> dns_names_of(X509* certificate) {
  std::vector<std::string> names;
  auto* const raw =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all(raw, &GENERAL_NAMES_free);
  if (!all) return names;
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(all.get(), i);
    if (name->type == GEN_DNS) add_name(names, text_of(name->d.dNSName));
  }
  return names;
}

std::vector<std::string> common_names_of(X509* certificate) {
  std::vector<std::string> names;
  X509_NAME* const subject = X509_get_subject_name(certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    add_name(names, text_of(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))));
  }
  return names;
}

}  // namespace

base::Result<std::shared_ptr<TlsServer>> TlsServer::load(Files files) {
  auto context = make_context(files);
  if (!context) return context.error();
  return std::shared_ptr<TlsServer>(new TlsServer(std::move(files), *std::move(context)));
}

base::Result<> TlsServer::reload(base::WallTime now) {
  const auto fresh = load(files_);
  if (!fresh) return fresh.error();
  // Unless nothing better is in use.
  if (auto why = (*fresh)->expiry(now); why && !expiry(now)) {
    return base::Error(std::make_error_code(std::errc::invalid_argument), *std::move(why));
  }
  context_ = (*fresh)->context_;
  return {};
}

base::WallTime TlsServer::valid_until() const {
  std::tm end{};
  ASN1_TIME_to_tm(X509_get0_notAfter(SSL_CTX_get0_certificate(context_->native_handle())), &end);
  // One that is to be valid for ever is so until the year 9999.
  const auto most = std::chrono::floor<std::chrono::seconds>(base::WallTime::max());
  return std::min(std::chrono::sys_seconds(std::chrono::seconds(::timegm(&end))), most);
}

std::optional<std::string> TlsServer::expiry(base::WallTime now) const {
  const base::WallTime end = valid_until();
  if (now <= end) return std::nullopt;
  return fmt::format("the certificate {} has expired, at {}", files_.certificate.native(),
                     base::iso_time(end));
}

std::optional<std::vector<std::string>> certificate_names(SSL* connection) {
  X509* const certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return std::nullopt;
  auto names = dns_names_of(certificate);
  if (names.empty()) names = common_names_of(certificate);
  return names;
}

}  // namespace spoor::daemon
