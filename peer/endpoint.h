#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::peer {

// Where a daemon listens: a TCP host and port, or a Unix socket.
struct Endpoint {
  std::string host;  // name, IPv4 or IPv6 address (without brackets); empty for a Unix socket
  std::uint16_t port = 0;
  std::string unix_path;
  bool is_tls = false;

  bool is_unix() const { return !unix_path.empty(); }

  // What the Host field of a request to it says.
  std::string host_field() const;

  // `http://host:port`, `https://host:port` or `unix:/path`.
  std::string to_string() const;

  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

inline constexpr std::uint16_t default_port = 7420;

// A number from 1 to 65535, and nothing else.
std::optional<std::uint16_t> parse_port(std::string_view text);

// From `http://host[:port][/]` or `https://...`, an IPv6 address in brackets, or `unix:/path`; to_string() of
// it reads back as the same. Fails with std::errc::invalid_argument and what is accepted instead.
base::Result<Endpoint> parse_endpoint(std::string_view url);

}  // namespace spoor::peer
