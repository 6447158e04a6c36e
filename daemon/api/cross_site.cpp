#include "daemon/api/cross_site.h"

#include <fmt/core.h>

#include <algorithm>
#include <boost/algorithm/string/predicate.hpp>
#include <boost/asio/ip/address.hpp>
#include <string>

#include "base/printable.h"
#include "tracker/paths/path.h"

namespace spoor::daemon {
namespace {

using boost::algorithm::iequals;
using boost::algorithm::istarts_with;

// Of a Host field: without its port, and without the brackets of an IPv6 address.
std::string_view name_of(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, std::min(host.find(']'), host.size()) - 1);
  const std::size_t port = host.find(':');
  if (port != host.rfind(':')) return host;  // an IPv6 address as it is
  host = host.substr(0, port);
  if (host.ends_with('.')) host.remove_suffix(1);
  return host;
}

bool is_own(std::string_view host, std::string_view node) {
  const std::string_view name = name_of(host);
  boost::system::error_code is_no_address;
  static_cast<void>(boost::asio::ip::make_address(std::string(name), is_no_address));
  return !is_no_address || iequals(name, "localhost") || iequals(name, node);
}

bool is_same_site(std::string_view origin, std::string_view host) {
  const std::size_t scheme = origin.find("://");
  return scheme != std::string_view::npos && iequals(origin.substr(scheme + 3), host);
}

}  // namespace

std::optional<Problem> refuse_cross_site(const HttpRequest& request, bool asks_for_credentials,
                                         std::string_view node) {
  if (request.caller.unix_peer) return std::nullopt;
  if (asks_for_credentials && istarts_with(request.authorization, "Bearer ")) return std::nullopt;
  if (!request.origin.empty() && !is_same_site(request.origin, request.host)) {
    return Problem{403, "foreign_origin",
                   fmt::format("a page of '{}' may not ask for this; send no Origin, or a token",
                               base::printable(request.origin))};
  }
  if (asks_for_credentials || request.caller.is_tls || request.host.empty()) return std::nullopt;
  // Peers reach an insecure listener by names that this node does not know; browsers send an Origin.
  const bool may_be_peer = !request.caller.is_trusted_without_tokens && request.origin.empty();
  if (may_be_peer || is_own(request.host, node)) return std::nullopt;
  return Problem{403, "foreign_host",
                 fmt::format("'{}' is no name of this node; ask for it by its IP address, as localhost or as "
                             "'{}', or set auth.tokens",
                             base::printable(request.host), node)};
}

}  // namespace spoor::daemon
