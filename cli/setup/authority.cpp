#include "cli/setup/authority.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <array>
#include <chrono>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "cli/program/options.h"

namespace spoor::cli {
namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* value) const {
    free(value);
  }
};
using Bio = std::unique_ptr<BIO, Free<&BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<&EVP_PKEY_free>>;
using Certificate = std::unique_ptr<X509, Free<&X509_free>>;
using Request = std::unique_ptr<X509_REQ, Free<&X509_REQ_free>>;
using Number = std::unique_ptr<BIGNUM, Free<&BN_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Free<&X509_EXTENSION_free>>;

constexpr std::chrono::days authority_time{3650};
constexpr std::chrono::days node_time{730};
// Clocks of new machines may be behind.
constexpr std::chrono::hours before_now{24};
constexpr int serial_bits = 127;

// Of libcrypto, which fails here for want of memory or randomness only.
template <class T>
T check(T result) {
  if (!result) throw std::bad_alloc();
  return result;
}

Bio reader(const std::string& text) {
  return Bio(check(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))));
}

template <class Write>
std::string written(const Write& write) {
  const Bio out(check(BIO_new(BIO_s_mem())));
  check(write(out.get()));
  char* bytes = nullptr;
  const auto size = BIO_get_mem_data(out.get(), &bytes);
  return {bytes, static_cast<std::size_t>(size)};
}

std::string to_pem(EVP_PKEY* key) {
  return written(
      [&](BIO* out) { return PEM_write_bio_PrivateKey(out, key, nullptr, nullptr, 0, nullptr, nullptr); });
}
std::string to_pem(X509* certificate) {
  return written([&](BIO* out) { return PEM_write_bio_X509(out, certificate); });
}

Key key_from(const std::string& pem) {
  return Key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, nullptr, nullptr));
}
Certificate certificate_from(const std::string& pem) {
  return Certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
}

void set_common_name(X509* certificate, const std::string& name) {
  check(X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(name.data()),
                                   static_cast<int>(name.size()), -1, 0));
}

// With a random serial number (RFC 5280, 4.1.2.2), for the key, from a day ago on.
Certificate blank(EVP_PKEY* key, base::WallTime now, std::chrono::days time) {
  Certificate made(check(X509_new()));
  const Number serial(check(BN_new()));
  check(BN_rand(serial.get(), serial_bits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY));
  check(BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(made.get())));
  check(X509_set_version(made.get(), X509_VERSION_3));
  const auto seconds = [](auto at) {
    return std::chrono::system_clock::to_time_t(std::chrono::time_point_cast<std::chrono::seconds>(at));
  };
  check(ASN1_TIME_set(X509_getm_notBefore(made.get()), seconds(now - before_now)));
  check(ASN1_TIME_set(X509_getm_notAfter(made.get()), seconds(now + time)));
  check(X509_set_pubkey(made.get(), key));
  return made;
}

void extend(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Extension made(check(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str())));
  check(X509_add_ext(certificate, made.get(), -1));
}

std::string sign(X509* certificate, X509* issuer, EVP_PKEY* key) {
  check(X509_set_issuer_name(certificate, X509_get_subject_name(issuer)));
  check(X509_sign(certificate, key, EVP_sha256()));
  return to_pem(certificate);
}

}  // namespace

KeyAndCertificate make_authority(const std::string& cluster, base::WallTime now) {
  const Key key(check(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256")));
  const Certificate made = blank(key.get(), now, authority_time);
  set_common_name(made.get(), fmt::format("Spoor CA {}", cluster).substr(0, ub_common_name));
  extend(made.get(), made.get(), NID_basic_constraints, "critical,CA:TRUE");
  extend(made.get(), made.get(), NID_key_usage, "critical,keyCertSign,cRLSign");
  extend(made.get(), made.get(), NID_subject_key_identifier, "hash");
  return {to_pem(key.get()), sign(made.get(), made.get(), key.get())};
}

bool is_label(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  constexpr std::size_t bytes_max = 63;
  return !name.empty() && name.size() <= bytes_max && !name.starts_with('-') &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

std::string make_key() {
  return to_pem(Key(check(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"))).get());
}

std::string make_request(const std::string& key_text) {
  const Key key(check(key_from(key_text)));
  const Request made(check(X509_REQ_new()));
  check(X509_REQ_set_pubkey(made.get(), key.get()));
  check(X509_REQ_sign(made.get(), key.get(), EVP_sha256()));
  return written([&](BIO* out) { return PEM_write_bio_X509_REQ(out, made.get()); });
}

base::Result<std::string> issue(const KeyAndCertificate& authority, const std::string& request_text,
                                const NodeNames& names, base::WallTime now) {
  if (!is_label(names.name))
    return invalid("with TLS the name of a node has letters, digits, '-' and '_', and no '.'");
  const Key authority_key = key_from(authority.key);
  const Certificate issuer = certificate_from(authority.certificate);
  if (!authority_key || !issuer || X509_check_private_key(issuer.get(), authority_key.get()) != 1)
    return invalid("the key of the certificate authority is not that of its certificate");
  const Request request(PEM_read_bio_X509_REQ(reader(request_text).get(), nullptr, nullptr, nullptr));
  EVP_PKEY* const key = request ? X509_REQ_get0_pubkey(request.get()) : nullptr;
  if (key == nullptr || X509_REQ_verify(request.get(), key) != 1)
    return invalid("the request for a certificate is not one, or is not signed by its key");
  const Certificate made = blank(key, now, node_time);
  // The common name is bounded, and clients ignore it: the names that count are the alternative ones.
  set_common_name(made.get(), names.name.substr(0, ub_common_name));
  extend(made.get(), issuer.get(), NID_subject_alt_name,
         fmt::format("DNS:{0}.{1},DNS:{0},IP:{2}", names.name, node_domain, names.address));
  extend(made.get(), issuer.get(), NID_basic_constraints, "critical,CA:FALSE");
  extend(made.get(), issuer.get(), NID_key_usage, "critical,digitalSignature");
  extend(made.get(), issuer.get(), NID_ext_key_usage, "serverAuth,clientAuth");
  extend(made.get(), issuer.get(), NID_authority_key_identifier, "keyid");
  return sign(made.get(), issuer.get(), authority_key.get());
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  check(X509_digest(certificate, EVP_sha256(), digest.data(), &size));
  return {reinterpret_cast<const char*>(digest.data()), size};
}

base::Result<std::string> fingerprint_of(const std::string& certificate_text) {
  const Certificate certificate = certificate_from(certificate_text);
  if (!certificate) return invalid("no certificate in PEM");
  return fingerprint_of(certificate.get());
}

}  // namespace spoor::cli
