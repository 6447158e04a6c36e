// The DNS names of members, and the DNS servers to query.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace spoor::base {

// Names are fully qualified: the system's search domains do not apply.
struct DnsSource {
  std::string name;
  std::uint16_t port = 0;  // of all addresses; SRV records carry their own
  bool is_srv = false;

  // `name:port` or `srv:name`.
  std::string to_string() const;

  friend bool operator==(const DnsSource&, const DnsSource&) = default;
};

// From `name[:port]` (A and AAAA records) or `srv:_service._proto.name`; fails with
// std::errc::invalid_argument and the accepted forms.
Result<DnsSource> parse_dns_source(std::string_view text);

struct DnsServer {
  std::string address;  // IPv4 or IPv6, without brackets
  std::uint16_t port = 53;

  // `address:port`, an IPv6 address in brackets.
  std::string to_string() const;

  friend bool operator==(const DnsServer&, const DnsServer&) = default;
};

// From `address[:port]`, an IPv6 address with a port in brackets; fails like parse_dns_source().
Result<DnsServer> parse_dns_server(std::string_view text);

}  // namespace spoor::base
