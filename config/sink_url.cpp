#include "config/sink_url.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/printable.h"

namespace spoor::config {
namespace {

constexpr std::size_t url_bytes_max = 2048;
constexpr std::uint16_t http_port = 80;
constexpr std::uint16_t https_port = 443;

base::Error bad_url(std::string_view url, std::string_view why) {
  return {std::make_error_code(std::errc::invalid_argument),
          fmt::format("'{}' is wrong: {}; expected http://HOST[:PORT]/PATH, https://..., nats://HOST[:PORT], "
                      "tls://..., kafka://HOST[:PORT] or postgresql://HOST/DATABASE",
                      base::printable(base::without_password(url)), why)};
}

bool is_url_character(char each) { return each > ' ' && each <= '~'; }

base::Result<SinkUrl> parse_http(const std::string& url, std::size_t authority) {
  const std::size_t end = std::min(url.find_first_of("/?", authority), url.size());
  SinkUrl parsed{.kind = SinkKind::http, .is_tls = url.starts_with("https:")};
  auto endpoint =
      base::parse_endpoint(std::string_view(url).substr(0, end), parsed.is_tls ? https_port : http_port);
  if (!endpoint) return endpoint.error();
  parsed.endpoint = *std::move(endpoint);
  parsed.target = url.substr(end);
  if (!parsed.target.starts_with('/')) parsed.target.insert(0, "/");
  if (parsed.target.find('#') != std::string::npos) return bad_url(url, "it has a fragment ('#')");
  return parsed;
}

// A list of servers, separated by commas.
base::Result<SinkUrl> parse_servers(const std::string& url, std::string_view list, SinkUrl parsed) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    const std::string server(list.substr(at, comma - at));
    if (!base::parse_endpoint("http://" + server))
      return bad_url(url,
                     fmt::format("'{}' is not HOST[:PORT]", base::printable(base::without_password(server))));
    parsed.servers.push_back(server);
    at = comma + 1;
  }
  return parsed;
}

}  // namespace

base::Result<SinkUrl> parse_sink_url(const std::string& url) {
  // First: a URL with a secret is never shown.
  if (url.substr(0, url.find('?')).find('@') != std::string::npos ||
      url.find("password=") != std::string::npos)
    return bad_url("...",
                   "users and passwords belong to 'user', 'password_file' and 'token_file' (in a path, write "
                   "'@' as %40)");
  constexpr std::array schemes = {
      std::pair{"http", SinkKind::http},   std::pair{"https", SinkKind::http},
      std::pair{"nats", SinkKind::nats},   std::pair{"tls", SinkKind::nats},
      std::pair{"kafka", SinkKind::kafka}, std::pair{"postgresql", SinkKind::postgresql},
  };
  const std::size_t colon = url.find("://");
  const std::string_view scheme = std::string_view(url).substr(0, std::min(colon, url.size()));
  const auto found =
      std::ranges::find(schemes, scheme, [](const auto& each) { return std::string_view(each.first); });
  if (colon == std::string::npos || found == schemes.end()) return bad_url(url, "the scheme is not known");
  if (url.size() > url_bytes_max || !std::ranges::all_of(url, is_url_character))
    return bad_url(url, fmt::format("a URL has at most {} printable characters", url_bytes_max));
  const std::size_t authority = colon + 3;
  SinkUrl parsed{.kind = found->second, .is_tls = scheme == "tls"};
  if (parsed.kind == SinkKind::http) return parse_http(url, authority);
  if (parsed.kind == SinkKind::postgresql) return parsed;
  return parse_servers(url, std::string_view(url).substr(authority), parsed);
}

}  // namespace spoor::config
