#include "peer/http/certificate_names.h"

#include <fmt/core.h>
#include <openssl/asn1.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <locale>
#include <memory>
#include <utility>

#include "base/endpoint.h"
#include "base/printable.h"

namespace spoor::peer {
namespace {

constexpr std::size_t quoted_max = 4;

std::string text_of(const ASN1_STRING* string) {
  const unsigned char* const data = ASN1_STRING_get0_data(string);
  const auto size = static_cast<std::size_t>(ASN1_STRING_length(string));
  return {reinterpret_cast<const char*>(data), size};
}

// Ignores names with a NUL byte, such as "host\0.evil".
void add_name(std::vector<std::string>& names, std::string name) {
  if (!name.empty() && name.find('\0') == std::string::npos) names.push_back(std::move(name));
}

// nullopt if the certificate has no alternative names at all.
std::optional<std::vector<std::string>> dns_names_of(X509* certificate) {
  std::vector<std::string> names;
  auto* const raw =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> all(raw, &GENERAL_NAMES_free);
  if (!all) return std::nullopt;
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

std::optional<std::vector<std::string>> certificate_names(SSL* connection) {
  X509* const certificate = SSL_get0_peer_certificate(connection);
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return std::nullopt;
  if (auto names = dns_names_of(certificate)) return names;
  return common_names_of(certificate);
}

std::optional<std::vector<std::string>> client_names(SSL* connection) {
  auto names = certificate_names(connection);
  if (names && names->empty()) names = common_names_of(SSL_get0_peer_certificate(connection));
  return names;
}

bool is_own_credential(std::span<const std::string> names) {
  const auto is_wildcard = [](const std::string& name) { return name.find('*') != std::string::npos; };
  return std::ranges::none_of(names, is_wildcard) &&
         !std::ranges::all_of(names, [](const std::string& name) { return base::is_ip_address(name); });
}

bool is_issued_for(std::span<const std::string> names, std::string_view node) {
  const auto is_node = [&](std::string_view text) {
    return boost::algorithm::iequals(text, node, std::locale::classic());
  };
  return std::ranges::any_of(
      names, [&](std::string_view name) { return is_node(name) || is_node(name.substr(0, name.find('.'))); });
}

base::Result<> check_issued_for(std::span<const std::string> names, std::string_view node) {
  if (!is_own_credential(names) || is_issued_for(names, node)) return {};
  return base::Error(
      std::make_error_code(std::errc::permission_denied),
      fmt::format(
          "its certificate was issued for {}, but the node calls itself '{}': set its node.name to the "
          "first label of a name in the certificate, or issue one that has '{}' among its DNS names",
          quoted_names(names), base::printable(node), base::printable(node)));
}

std::string quoted_names(std::span<const std::string> names) {
  std::string text;
  for (const std::string& name : names.first(std::min(names.size(), quoted_max))) {
    text += (text.empty() ? "'" : ", '") + base::printable(name) + "'";
  }
  return names.size() > quoted_max ? text + " and others" : text;
}

}  // namespace spoor::peer
