// The names in which peers are found, and the servers that are asked for them.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/check.h"

namespace spoor::config {
namespace {

constexpr std::size_t name_bytes_max = 253;
constexpr std::size_t label_bytes_max = 63;

bool is_address(std::string_view text, int family) {
  // inet_pton would stop at a NUL and call what stands before it an address.
  if (text.find('\0') != std::string_view::npos) return false;
  in6_addr address{};
  return ::inet_pton(family, std::string(text).c_str(), &address) == 1;
}

bool is_label(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
  return !text.empty() && text.size() <= label_bytes_max &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

// A final dot is fine: the name is taken as a full one with or without it.
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

// Why nobody can be found by `source`, or nothing.
std::optional<std::string> source_problem(std::string_view source) {
  constexpr std::string_view srv = "srv:";
  if (source.starts_with(srv)) {
    if (is_service(source.substr(srv.size()))) return std::nullopt;
    return "expected srv:_SERVICE._PROTO.NAME, such as \"srv:_spoor._tcp.example.com\"; its records tell the "
           "ports";
  }
  const std::size_t name_end = std::min(source.find(':'), source.size());
  const std::string_view name = source.substr(0, name_end);
  if (is_address(name, AF_INET) || is_address(source, AF_INET6)) {
    return "it is an address: list it in peers.static";
  }
  const bool is_fine = is_name(name) && (name_end == source.size() || is_port(source.substr(name_end + 1)));
  if (is_fine) return std::nullopt;
  return "expected NAME[:PORT] or srv:_SERVICE._PROTO.NAME, without http://";
}

// address, v4:port, [v6] or [v6]:port.
bool is_server(std::string_view text) {
  if (is_address(text, AF_INET6)) return true;
  const bool in_brackets = text.starts_with('[');
  const std::size_t end = std::min(text.find(in_brackets ? ']' : ':'), text.size());
  const std::string_view address = in_brackets ? text.substr(1, end - 1) : text.substr(0, end);
  if (!is_address(address, in_brackets ? AF_INET6 : AF_INET)) return false;
  std::string_view rest = text.substr(end);
  if (in_brackets) {
    if (rest.empty()) return false;
    rest.remove_prefix(1);
  }
  return rest.empty() || (rest.front() == ':' && is_port(rest.substr(1)));
}

}  // namespace

void check_dns(const Config& config, Problems& problems) {
  for (std::size_t i = 0; i < config.peers.dns.size(); ++i) {
    const std::string& source = config.peers.dns[i];
    const auto why = source_problem(source);
    if (!why) continue;
    const std::string key = fmt::format("peers.dns[{}]", i);
    problems.push_back({key, fmt::format("{}: {} is wrong: {}", key, in_quotes(source), *why)});
  }
  for (std::size_t i = 0; i < config.peers.dns_servers.size(); ++i) {
    const std::string& server = config.peers.dns_servers[i];
    if (is_server(server)) continue;
    const std::string key = fmt::format("peers.dns_servers[{}]", i);
    problems.push_back(
        {key, fmt::format("{}: {} is wrong: expected an IP address, ADDRESS:PORT or [IPV6]:PORT", key,
                          in_quotes(server))});
  }
}

}  // namespace spoor::config
