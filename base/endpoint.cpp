#include "base/endpoint.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <sys/un.h>

#include <algorithm>
#include <optional>

#include "base/number.h"
#include "base/printable.h"

namespace spoor::base {
namespace {

constexpr std::size_t host_bytes_max = 253;
constexpr std::size_t socket_path_bytes_max = sizeof(sockaddr_un::sun_path);  // with the NUL at its end

Error bad_url(std::string_view url, std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("'{}' is wrong: {}; expected http://HOST[:PORT], https://HOST[:PORT] or unix:/PATH",
                      printable(without_password(url)), why)};
}

bool is_host(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
  return !text.empty() && text.size() <= host_bytes_max &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

Result<Endpoint> parse_unix(std::string_view url, std::string_view path) {
  if (!path.starts_with('/')) return bad_url(url, "the socket's path is not absolute");
  if (path.find('\0') != std::string_view::npos) return bad_url(url, "the socket's path contains a NUL byte");
  if (path.size() >= socket_path_bytes_max) {
    return bad_url(url, fmt::format("a socket's path must be shorter than {} bytes, this one has {}",
                                    socket_path_bytes_max, path.size()));
  }
  Endpoint endpoint;
  endpoint.unix_path = path;
  return endpoint;
}

}  // namespace

bool is_ip_address(std::string_view text, int family) {
  // inet_pton() stops at a NUL.
  if (text.find('\0') != std::string_view::npos) return false;
  in6_addr address{};
  return ::inet_pton(family, std::string(text).c_str(), &address) == 1;
}

bool is_ip_address(std::string_view text) {
  return is_ip_address(text, AF_INET) || is_ip_address(text, AF_INET6);
}

std::optional<std::uint16_t> parse_port(std::string_view text) {
  const auto port = parse_number<std::uint16_t>(text);
  return port == std::uint16_t{0} ? std::nullopt : port;
}

std::string Endpoint::host_field() const {
  if (is_unix()) return "localhost";
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? '[' + host + ']' : host;
}

std::string Endpoint::to_string() const {
  if (is_unix()) return "unix:" + unix_path;
  const char* const scheme = is_tls ? "https" : "http";
  const char* const separator = is_tls && !tls_name.empty() ? "#" : "";
  return fmt::format("{}://{}:{}{}{}", scheme, host_field(), port, separator, *separator ? tls_name : "");
}

Result<Endpoint> parse_endpoint(std::string_view url, std::uint16_t default_port) {
  constexpr std::string_view unix_scheme = "unix:";
  constexpr std::string_view http_scheme = "http://";
  constexpr std::string_view https_scheme = "https://";
  if (url.starts_with(unix_scheme)) return parse_unix(url, url.substr(unix_scheme.size()));
  Endpoint endpoint;
  endpoint.is_tls = url.starts_with(https_scheme);
  if (!endpoint.is_tls && !url.starts_with(http_scheme)) return bad_url(url, "the scheme is missing");
  std::string_view rest = url.substr(endpoint.is_tls ? https_scheme.size() : http_scheme.size());
  if (const std::size_t hash = rest.find('#'); endpoint.is_tls && hash != std::string_view::npos) {
    endpoint.tls_name = rest.substr(hash + 1);
    rest = rest.substr(0, hash);
    if (!is_host(endpoint.tls_name)) return bad_url(url, "no name of a certificate follows '#'");
  }
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ ") != std::string_view::npos)
    return bad_url(url, "it has more than a host and a port");

  const bool in_brackets = rest.starts_with('[');
  const std::size_t host_end = in_brackets ? rest.find(']') : rest.find(':');
  if (in_brackets && host_end == std::string_view::npos) return bad_url(url, "a ']' is missing");
  endpoint.host = in_brackets ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  rest.remove_prefix(std::min(rest.size(), in_brackets ? host_end + 1 : host_end));
  if (endpoint.host.empty()) return bad_url(url, "the host is missing");
  // A zone ("%eth0") has a meaning on one machine only.
  if (in_brackets && !is_ip_address(endpoint.host, AF_INET6))
    return bad_url(url, "the brackets do not hold an IPv6 address (without a zone)");
  if (!in_brackets && !is_host(endpoint.host))
    return bad_url(url, "a host has letters, digits, '.', '-' and '_' only, 253 at most");

  endpoint.port = default_port;
  if (!rest.empty()) {
    const auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
    if (!port) return bad_url(url, "the port is not a number from 1 to 65535");
    endpoint.port = *port;
  }
  return endpoint;
}

}  // namespace spoor::base
