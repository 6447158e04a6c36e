#include "peer/endpoint.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace spoor::peer {
namespace {

base::Error bad_url(std::string_view url, std::string_view why) {
  return {
      std::make_error_code(std::errc::invalid_argument),
      fmt::format("'{}' is no URL of a daemon: {}; write http://host:port, https://host:port or unix:/path",
                  url, why)};
}

// The zone of a link-local address ("%eth0") means something on one machine only.
bool is_ipv6_address(const std::string& text) {
  constexpr std::string_view allowed = "0123456789abcdefABCDEF:.";  // no NUL, which would end the text early
  in6_addr scratch{};
  return text.find_first_not_of(allowed) == std::string::npos &&
         ::inet_pton(AF_INET6, text.c_str(), &scratch) == 1;
}

bool is_host(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
  });
}

}  // namespace

std::optional<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc{} || end != text.data() + text.size() || port == 0) return std::nullopt;
  return port;
}

std::string Endpoint::host_field() const {
  if (is_unix()) return "localhost";
  const bool is_ipv6 = host.find(':') != std::string::npos;
  return is_ipv6 ? '[' + host + ']' : host;
}

std::string Endpoint::to_string() const {
  if (is_unix()) return "unix:" + unix_path;
  return fmt::format("{}://{}:{}", is_tls ? "https" : "http", host_field(), port);
}

base::Result<Endpoint> parse_endpoint(std::string_view url) {
  constexpr std::string_view unix_scheme = "unix:";
  constexpr std::string_view http_scheme = "http://";
  constexpr std::string_view https_scheme = "https://";
  Endpoint endpoint;
  if (url.starts_with(unix_scheme)) {
    endpoint.unix_path = url.substr(unix_scheme.size());
    if (!endpoint.unix_path.starts_with('/')) return bad_url(url, "the socket's path is not absolute");
    return endpoint;
  }
  endpoint.is_tls = url.starts_with(https_scheme);
  if (!endpoint.is_tls && !url.starts_with(http_scheme)) {
    return bad_url(url, "it begins with neither http:// nor https:// nor unix:/");
  }
  std::string_view rest = url.substr(endpoint.is_tls ? https_scheme.size() : http_scheme.size());
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (rest.find_first_of("/?#@ ") != std::string_view::npos)
    return bad_url(url, "there is more than a host and a port");

  const bool in_brackets = rest.starts_with('[');
  const std::size_t host_end = in_brackets ? rest.find(']') : rest.find(':');
  if (in_brackets && host_end == std::string_view::npos) return bad_url(url, "a ']' is missing");
  endpoint.host = in_brackets ? rest.substr(1, host_end - 1) : rest.substr(0, host_end);
  rest.remove_prefix(std::min(rest.size(), in_brackets ? host_end + 1 : host_end));
  if (endpoint.host.empty()) return bad_url(url, "there is no host");
  if (in_brackets && !is_ipv6_address(endpoint.host))
    return bad_url(url, "what stands in brackets is no IPv6 address (without a zone)");
  if (!in_brackets && !is_host(endpoint.host))
    return bad_url(url, "a host has letters, digits, '.', '-' and '_' only");

  endpoint.port = default_port;
  if (!rest.empty()) {
    const auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
    if (!port) return bad_url(url, "the port is no number from 1 to 65535");
    endpoint.port = *port;
  }
  return endpoint;
}

}  // namespace spoor::peer
