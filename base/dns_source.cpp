#include "base/dns_source.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "base/endpoint.h"
#include "base/printable.h"

namespace spoor::base {
namespace {

constexpr std::size_t name_bytes_max = 253;
constexpr std::size_t label_bytes_max = 63;

Error bad(std::string_view text, std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("'{}' is wrong: {}", printable(without_password(text)), why)};
}

bool is_label(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !text.empty() && text.size() <= label_bytes_max &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

// The name is fully qualified with or without a final dot.
bool is_name(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  if (text.size() > name_bytes_max) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

// Whether it begins with `_service._proto.`, and more follows.
bool is_service(std::string_view text) {
  const std::size_t second = text.find("._");
  return text.starts_with('_') && second == text.find('.') && second != std::string_view::npos &&
         text.find('.', second + 1) < text.size() - 1 && is_name(text);
}

}  // namespace

std::string DnsSource::to_string() const { return is_srv ? "srv:" + name : fmt::format("{}:{}", name, port); }

std::string DnsServer::to_string() const {
  const bool is_ipv6 = address.find(':') != std::string::npos;
  return is_ipv6 ? fmt::format("[{}]:{}", address, port) : fmt::format("{}:{}", address, port);
}

Result<DnsSource> parse_dns_source(std::string_view text) {
  constexpr std::string_view srv = "srv:";
  DnsSource source;
  source.is_srv = text.starts_with(srv);
  if (source.is_srv) {
    source.name = text.substr(srv.size());
    if (is_service(source.name)) return source;
    return bad(text,
               "expected srv:_SERVICE._PROTO.NAME, such as srv:_spoor._tcp.example.com, without a port: SRV "
               "records contain it");
  }
  const std::size_t name_end = std::min(text.find(':'), text.size());
  source.name = text.substr(0, name_end);
  if (is_ip_address(source.name) || is_ip_address(text, AF_INET6))
    return bad(text, "it is an address: list it in peers.static");
  const auto port = name_end == text.size() ? spoor_port : parse_port(text.substr(name_end + 1));
  if (!port || !is_name(source.name))
    return bad(text, "expected NAME[:PORT] or srv:_SERVICE._PROTO.NAME, without http://");
  source.port = *port;
  return source;
}

Result<DnsServer> parse_dns_server(std::string_view text) {
  const bool in_brackets = text.starts_with('[');
  // A second colon makes it an IPv6 address without a port.
  const std::size_t colon = text.find(':') == text.rfind(':') ? text.find(':') : std::string_view::npos;
  const std::size_t address_end = std::min(in_brackets ? text.find(']') : colon, text.size());
  DnsServer server;
  server.address = in_brackets ? text.substr(1, address_end - 1) : text.substr(0, address_end);
  std::string_view rest = text.substr(std::min(address_end + (in_brackets ? 1 : 0), text.size()));
  const bool is_address = in_brackets ? address_end < text.size() && is_ip_address(server.address, AF_INET6)
                                      : is_ip_address(server.address);
  const auto port = rest.empty()          ? std::optional<std::uint16_t>(server.port)
                    : rest.front() == ':' ? parse_port(rest.substr(1))
                                          : std::nullopt;
  if (!is_address || !port) return bad(text, "expected an IP address, ADDRESS:PORT or [IPV6]:PORT");
  server.port = *port;
  return server;
}

}  // namespace spoor::base
