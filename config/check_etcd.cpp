// Checks `peers.etcd`.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/check.h"
#include "config/derived.h"
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

void check_etcd_endpoints(const Etcd& etcd, Problems& problems) {
  const std::string list = "peers.etcd.endpoints";
  if (etcd.endpoints.empty() || etcd.endpoints.size() > endpoints_max) {
    add(problems, list, fmt::format("expected 1 to {}, such as [\"http://127.0.0.1:2379\"]", endpoints_max));
  }
  if (etcd.tls) check_tls_client("peers.etcd.tls", *etcd.tls, problems);
  check_secret_file("peers.etcd.password_file", etcd.password_file, problems);
  if (etcd.user.empty() != etcd.password_file.empty()) {
    add(problems, "peers.etcd", "a 'user' and its 'password_file' are needed, or neither");
  }
  const bool is_plain = !std::ranges::all_of(
      etcd.endpoints, [](const base::Endpoint& each) { return each.is_tls || each.is_unix(); });
  if (is_plain && etcd.tls) {
    add(problems, list, "with 'tls' each endpoint has the form https://HOST:PORT or unix:/PATH");
  }
}

bool is_prefix(std::string_view text) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/";
  return !text.empty() && text.size() <= prefix_bytes_max && !text.starts_with('/') && !text.ends_with('/') &&
         text.find_first_not_of(allowed) == std::string_view::npos;
}

void check_times(const Etcd& etcd, Problems& problems) {
  // The time to live of an etcd lease is in whole seconds.
  if (etcd.ttl > ttl_most || etcd.ttl % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    add(problems, "peers.etcd.ttl",
        fmt::format("{} is wrong: expected whole seconds, at most {}", in_quotes(format_duration(etcd.ttl)),
                    format_duration(ttl_most)));
  }
  if (etcd.forget_after < 3 * etcd.ttl) {
    add(problems, "peers.etcd.forget_after",
        fmt::format(
            "{} is too short: a node that restarts would be forgotten; expected at least three times the ttl",
            in_quotes(format_duration(etcd.forget_after))));
  }
}

// Whether there are listeners on `port`, and all of them expect TLS.
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
        "is required, because no listener has a fixed port and an address that other nodes reach (neither "
        "loopback nor a wildcard): such as \"http://10.0.0.1:7420\"");
    return;
  }
  const auto endpoint = base::parse_endpoint(url);
  if (!endpoint) return add(problems, key, endpoint.error().message);
  if (!endpoint->is_tls && !endpoint->is_unix() && speaks_only_tls(config, endpoint->port)) {
    add(problems, key,
        fmt::format("{} is wrong: the listener on port {} expects TLS; give an https:// URL", in_quotes(url),
                    endpoint->port));
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
