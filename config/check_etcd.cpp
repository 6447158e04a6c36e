// Membership by etcd: where it is, and what this node is told to others as.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/advertised_url.h"
#include "config/check.h"
#include "config/settings.h"
#include "config/units.h"

namespace spoor::config {
namespace {

constexpr std::size_t prefix_bytes_max = 128;
constexpr std::size_t endpoints_max = 64;
constexpr std::chrono::milliseconds ttl_most = std::chrono::minutes(10);

void add(Problems& problems, const std::string& key, const std::string& text) {
  problems.push_back({key, fmt::format("{}: {}", key, text)});
}

// Spoor's own default port would never be etcd's.
bool lacks_port(std::string_view url) { return url.rfind(':') == url.find("://") || url.ends_with(']'); }

void check_etcd_endpoints(const Etcd& etcd, Problems& problems) {
  const std::string list = "peers.etcd.endpoints";
  if (etcd.endpoints.empty() || etcd.endpoints.size() > endpoints_max) {
    add(problems, list, fmt::format("expected 1 to {}, such as [\"http://127.0.0.1:2379\"]", endpoints_max));
  }
  for (std::size_t i = 0; i < etcd.endpoints.size(); ++i) {
    const std::string& url = etcd.endpoints[i];
    if (const auto why = peer_url_problem(url)) {
      add(problems, fmt::format("{}[{}]", list, i), fmt::format("{} is wrong: {}", in_quotes(url), *why));
    } else if (url.starts_with("https:")) {
      add(problems, fmt::format("{}[{}]", list, i),
          fmt::format("{} is wrong: etcd over TLS is not supported by this version", in_quotes(url)));
    } else if (url.starts_with("http:") && lacks_port(url)) {
      add(problems, fmt::format("{}[{}]", list, i),
          fmt::format("{} has no port: expected http://HOST:2379", in_quotes(url)));
    }
  }
}

bool is_prefix(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  return !text.empty() && text.size() <= prefix_bytes_max && !text.starts_with('/') && !text.ends_with('/') &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

void check_times(const Etcd& etcd, Problems& problems) {
  // etcd's own times to live are whole seconds.
  if (etcd.ttl > ttl_most || etcd.ttl % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    add(problems, "peers.etcd.ttl",
        fmt::format("{} is wrong: expected whole seconds, at most {}", in_quotes(format_duration(etcd.ttl)),
                    format_duration(ttl_most)));
  }
  if (etcd.forget_after < 3 * etcd.ttl) {
    add(problems, "peers.etcd.forget_after",
        fmt::format(
            "{} is too short: a node that restarts would be forgotten; expected three times the ttl at least",
            in_quotes(format_duration(etcd.forget_after))));
  }
}

// The port that the URL names, or Spoor's own.
std::uint16_t port_of(std::string_view url) {
  std::uint16_t port = Listener().port;
  if (!lacks_port(url)) {
    const auto digits = url.substr(url.rfind(':') + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), port);
  }
  return port;
}

// Whether the listeners on that port, if there are any, expect TLS.
bool speaks_only_tls(const Config& config, std::uint16_t port) {
  const auto is_on_port = [&](const Listener& each) { return each.unix_path.empty() && each.port == port; };
  return std::ranges::any_of(config.listen, is_on_port) &&
         std::ranges::all_of(config.listen,
                             [&](const Listener& each) { return !is_on_port(each) || each.tls.has_value(); });
}

void check_url(const Config& config, Problems& problems) {
  const std::string key = "peers.etcd.url";
  const std::string& url = config.peers.etcd->url;
  if (url.empty()) {
    if (advertised_url(config)) return;
    add(problems, key,
        "is required, because no listener tells where others reach this node (an address that is neither "
        "of this machine only nor a wildcard, with a fixed port): such as \"http://10.0.0.1:7420\"");
  } else if (const auto why = peer_url_problem(url)) {
    add(problems, key, fmt::format("{} is wrong: {}", in_quotes(url), *why));
  } else if (url.starts_with("http:") && speaks_only_tls(config, port_of(url))) {
    add(problems, key,
        fmt::format("{} is wrong: the listener on port {} expects TLS; give an https:// URL", in_quotes(url),
                    port_of(url)));
  }
}

}  // namespace

void check_etcd(const Config& config, Problems& problems) {
  if (!config.peers.etcd) return;
  const Etcd& etcd = *config.peers.etcd;
  check_etcd_endpoints(etcd, problems);
  if (!is_prefix(etcd.prefix)) {
    add(problems, "peers.etcd.prefix",
        fmt::format("{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ - /, no / at either end",
                    in_quotes(etcd.prefix), prefix_bytes_max));
  }
  check_times(etcd, problems);
  check_url(config, problems);
}

}  // namespace spoor::config
