#include "peer/dns_source.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "peer/endpoint.h"

namespace spoor::peer {
namespace {

base::Error bad(std::string_view text, std::string_view what, std::string_view accepted) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("'{}' is no {}; write {}", text, what, accepted)};
}

bool is_address(const std::string& text) {
  if (text.find('\0') != std::string::npos) return false;
  in6_addr scratch{};
  return ::inet_pton(AF_INET, text.c_str(), &scratch) == 1 ||
         ::inet_pton(AF_INET6, text.c_str(), &scratch) == 1;
}

}  // namespace

std::string DnsSource::to_string() const { return is_srv ? "srv:" + name : fmt::format("{}:{}", name, port); }

base::Result<DnsSource> parse_dns_source(std::string_view text) {
  constexpr std::string_view srv = "srv:";
  const auto refused = [&] { return bad(text, "DNS name", "name[:port] or srv:_service._proto.name"); };
  DnsSource source;
  source.is_srv = text.starts_with(srv);
  const std::string_view rest = source.is_srv ? text.substr(srv.size()) : text;
  const std::size_t name_end = std::min(rest.find(':'), rest.size());
  source.name = rest.substr(0, name_end);
  if (source.name.empty() || is_address(source.name)) return refused();
  if (!source.is_srv) source.port = default_port;
  if (name_end < rest.size()) {
    const auto port = source.is_srv ? std::nullopt : parse_port(rest.substr(name_end + 1));
    if (!port) return refused();
    source.port = *port;
  }
  return source;
}

base::Result<DnsServer> parse_dns_server(std::string_view text) {
  const auto refused = [&] { return bad(text, "DNS server", "address[:port] or [v6 address]:port"); };
  const bool in_brackets = text.starts_with('[');
  // A second colon makes it an IPv6 address without a port.
  const std::size_t colon = text.find(':') == text.rfind(':') ? text.find(':') : std::string_view::npos;
  const std::size_t address_end = in_brackets ? text.find(']') : std::min(colon, text.size());
  if (address_end == std::string_view::npos) return refused();
  DnsServer server;
  server.address = in_brackets ? text.substr(1, address_end - 1) : text.substr(0, address_end);
  if (!is_address(server.address)) return refused();
  const std::string_view rest = text.substr(address_end + (in_brackets ? 1 : 0));
  if (rest.empty()) return server;
  const auto port = rest.front() == ':' ? parse_port(rest.substr(1)) : std::nullopt;
  if (!port) return refused();
  server.port = *port;
  return server;
}

}  // namespace spoor::peer
