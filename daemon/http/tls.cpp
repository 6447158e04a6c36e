#include "daemon/http/tls.h"

#include <fmt/core.h>
#include <openssl/ssl.h>

#include <utility>

#include "base/clock.h"
#include "peer/http/credentials.h"

namespace spoor::daemon {
namespace {

namespace ssl = boost::asio::ssl;

base::Result<std::shared_ptr<ssl::context>> make_context(const TlsServer::Files& files) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  // No resumption: a resumed session would outlive its certificate, and connections are long-lived anyway.
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);  // most connections are idle
  if (const auto certificate = peer::load_certificate(*context, files.certificate, files.key); !certificate) {
    return certificate.error();
  }
  if (files.client_ca.empty()) return context;
  if (const auto authorities = peer::load_authorities(*context, "client_ca", files.client_ca); !authorities) {
    return authorities.error();
  }
  // Clients choose their certificate by these names.
  SSL_CTX_set_client_CA_list(native, SSL_load_client_CA_file(files.client_ca.c_str()));
  boost::system::error_code error;
  context->set_verify_mode(ssl::verify_peer, error);
  return context;
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
  // An expired certificate is accepted only if the one in use has expired, too.
  if (auto why = (*fresh)->expiry(now); why && !expiry(now)) {
    return base::Error(std::make_error_code(std::errc::invalid_argument), *std::move(why));
  }
  const std::scoped_lock lock(mutex_);
  context_ = (*fresh)->context_;
  return {};
}

base::WallTime TlsServer::valid_until() const {
  return peer::certificate_valid_until(*context()).value();  // load() has set one
}

std::optional<std::string> TlsServer::expiry(base::WallTime now) const {
  const base::WallTime end = valid_until();
  if (now <= end) return std::nullopt;
  return fmt::format("the certificate {} has expired, at {}", files_.certificate.native(),
                     base::iso_time(end));
}

}  // namespace spoor::daemon
