#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::base {

// The address of an HTTP server: a TCP host and port, or a Unix socket.
struct Endpoint {
  std::string host;  // name, IPv4 or IPv6 address (without brackets); empty for a Unix socket
  std::uint16_t port = 0;
  std::string unix_path;
  bool is_tls = false;
  std::string tls_name = {};  // https: the certificate must be issued for it; empty: for `host`

  bool is_unix() const { return !unix_path.empty(); }

  // The value of the Host field of a request to it.
  std::string host_field() const;

  // `http://host:port`, `https://host:port[#tls_name]` or `unix:/path`.
  std::string to_string() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The files of a TLS client, in PEM; each may be empty.
struct TlsClientFiles {
  std::filesystem::path ca = {};           // empty: the authorities that the system trusts
  std::filesystem::path certificate = {};  // with `key`: the certificate of the client
  std::filesystem::path key = {};

  bool operator==(const TlsClientFiles&) const = default;
};

inline constexpr std::uint16_t spoor_port = 7420;
inline constexpr std::uint16_t etcd_port = 2379;

// Whether `text` is an IP address of one of these families (AF_INET, AF_INET6), without brackets or zone.
bool is_ip_address(std::string_view text, int family);
bool is_ip_address(std::string_view text);

// A number from 1 to 65535, and nothing else.
std::optional<std::uint16_t> parse_port(std::string_view text);

// From `http://host[:port][/]`, `https://host[:port][/][#tls_name]`, an IPv6 address in brackets, or
// `unix:/path`; to_string() of it parses to the same endpoint. Fails with std::errc::invalid_argument and the
// accepted forms.
Result<Endpoint> parse_endpoint(std::string_view url, std::uint16_t default_port = spoor_port);

}  // namespace spoor::base
