// Checks `listen`, `peers`, `auth` and `publish`. Messages on secrets and their files do not quote values: a
// value may be a secret in the wrong place.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/check.h"
#include "config/derived.h"
#include "config/secret_file.h"
#include "config/sink_url.h"
#include "config/units.h"

namespace spoor::config {
namespace {

// Including the terminating NUL.
constexpr std::size_t socket_path_bytes_max = sizeof(sockaddr_un::sun_path);
constexpr std::size_t prefix_bytes_max = 128;
constexpr std::size_t endpoints_max = 64;
constexpr std::chrono::milliseconds ttl_most = std::chrono::minutes(10);
constexpr std::size_t sha256_digits = 64;
constexpr std::size_t sinks_max = 16;
constexpr std::size_t topic_bytes_max = 249;  // of Kafka

// Why a value is invalid; std::nullopt if it is valid.
using Why = std::optional<std::string>;

void check_secret_file(const std::string& key, const std::filesystem::path& file, Problems& problems) {
  if (file.empty()) return;
  if (const auto why = secret_file_problem(file)) add(problems, key, "{}", *why);
}

void check_tls_client(const std::string& key, const std::optional<PeerTls>& tls, Problems& problems) {
  if (!tls) return;
  check_secret_file(key + ".ca", tls->ca, problems);
  check_secret_file(key + ".certificate", tls->certificate, problems);
  check_secret_file(key + ".key", tls->key, problems);
  if (tls->certificate.empty() != tls->key.empty())
    add(problems, key, "a 'certificate' and its 'key' are needed, or neither");
}

// --- listen ---

enum class Reach { not_an_address, this_machine, other_machines };

Reach reach_of(const std::string& address) {
  // inet_pton() would stop at a NUL and accept the text before it.
  if (address.find('\0') != std::string::npos) return Reach::not_an_address;
  in_addr v4{};
  in6_addr v6{};
  bool loopback = false;
  if (::inet_pton(AF_INET, address.c_str(), &v4) == 1) {
    loopback = (ntohl(v4.s_addr) >> 24U) == IN_LOOPBACKNET;
  } else if (::inet_pton(AF_INET6, address.c_str(), &v6) == 1) {
    // ::1, or an address of 127.0.0.0/8 in the form ::ffff:127.0.0.1.
    const bool mapped = IN6_IS_ADDR_V4MAPPED(&v6);
    loopback = IN6_IS_ADDR_LOOPBACK(&v6) || (mapped && v6.s6_addr[12] == IN_LOOPBACKNET);
  } else {
    return Reach::not_an_address;
  }
  return loopback ? Reach::this_machine : Reach::other_machines;
}

bool is_octal_mode(const std::string& text) {
  const bool has_digits = text.size() == 3 || (text.size() == 4 && text.front() == '0');
  return has_digits && text.find_first_not_of("01234567") == std::string::npos;
}

Why unix_listener_problem(const Listener& listener) {
  const std::string& path = listener.unix_path.native();
  if (listener.tls) return "there is no TLS on a Unix socket: the kernel reports the user of the client";
  if (!listener.mode.empty() && !is_octal_mode(listener.mode)) {
    return fmt::format("'mode' {} is wrong: expected three octal digits, such as \"0660\"",
                       in_quotes(listener.mode));
  }
  std::string why;
  if (path.find('\0') != std::string::npos) {
    why = "it contains a NUL byte";
  } else if (!path.starts_with('/')) {
    why = "expected an absolute path, such as /run/spoor/spoor.sock";
  } else if (path.size() >= socket_path_bytes_max) {
    why = fmt::format("a socket's path must be shorter than {} bytes, this one has {}", socket_path_bytes_max,
                      path.size());
  } else {
    return std::nullopt;
  }
  return fmt::format("{} is wrong: {}", in_quotes(path), why);
}

Why server_tls_problem(const Tls& tls) {
  if (tls.certificate.empty() || tls.key.empty()) return "'tls' needs a 'certificate' and its 'key'";
  for (const auto& file : {tls.certificate, tls.key, tls.client_ca}) {
    if (file.empty()) continue;
    if (const auto why = secret_file_problem(file))
      return fmt::format("{}: {}", in_quotes(file.native()), *why);
  }
  return std::nullopt;
}

Why listener_problem(const Listener& listener, const Config::Auth& auth) {
  const bool has_unix = !listener.unix_path.empty();
  if (listener.address.empty() != has_unix)
    return "expected either 'address' and 'port', or 'unix', and not both";
  if (has_unix) return unix_listener_problem(listener);
  if (!listener.mode.empty() || !listener.group.empty()) return "only a Unix socket has 'mode' and 'group'";
  if (listener.tls) {
    if (auto why = server_tls_problem(*listener.tls)) return why;
  }
  const Reach reach = reach_of(listener.address);
  if (reach == Reach::not_an_address) {
    return fmt::format("{} is wrong: expected an IP address, such as \"127.0.0.1\" or \"::1\"",
                       in_quotes(listener.address));
  }
  if (listener.insecure) return std::nullopt;
  const bool asks_for_certificates = listener.tls && !listener.tls->client_ca.empty();
  if (asks_for_certificates && auth.certificates.empty() && auth.tokens.empty())
    return "no client would have a role on this listener: set auth.certificates or auth.tokens";
  if (reach == Reach::this_machine || asks_for_certificates || !auth.tokens.empty()) return std::nullopt;
  return fmt::format(
      "{} is refused: other machines reach it, and clients are not authenticated; set 'client_ca' in "
      "'tls', or set auth.tokens, or accept the risk with \"insecure\": true on this listener",
      in_quotes(listener.address));
}

void check_listeners(const Config& config, Problems& problems) {
  if (config.listen.empty())
    add(problems, "listen", "at least one listener is required, or no client could reach the daemon");
  check_each("listen", config.listen, [&](const std::string& key, const Listener& listener) {
    if (const auto why = listener_problem(listener, config.auth)) add(problems, key, "{}", *why);
  });
}

// --- peers ---

void check_etcd_client(const Etcd& etcd, Problems& problems) {
  const std::string list = "peers.etcd.endpoints";
  if (etcd.endpoints.empty() || etcd.endpoints.size() > endpoints_max)
    add(problems, list, "expected 1 to {}, such as [\"http://127.0.0.1:2379\"]", endpoints_max);
  check_tls_client("peers.etcd.tls", etcd.tls, problems);
  check_secret_file("peers.etcd.password_file", etcd.password_file, problems);
  if (etcd.user.empty() != etcd.password_file.empty())
    add(problems, "peers.etcd", "a 'user' and its 'password_file' are needed, or neither");
  const bool is_plain = !std::ranges::all_of(
      etcd.endpoints, [](const base::Endpoint& each) { return each.is_tls || each.is_unix(); });
  if (is_plain && etcd.tls)
    add(problems, list, "with 'tls' each endpoint has the form https://HOST:PORT or unix:/PATH");
}

void check_etcd_settings(const Etcd& etcd, Problems& problems) {
  if (!is_name(etcd.prefix, prefix_bytes_max, "/") || etcd.prefix.starts_with('/') ||
      etcd.prefix.ends_with('/')) {
    add(problems, "peers.etcd.prefix",
        "{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ - /, no / at either end", in_quotes(etcd.prefix),
        prefix_bytes_max);
  }
  // The time to live of an etcd lease is in whole seconds.
  if (etcd.ttl > ttl_most || etcd.ttl % std::chrono::seconds(1) != std::chrono::milliseconds(0)) {
    add(problems, "peers.etcd.ttl", "{} is wrong: expected whole seconds, at most {}",
        in_quotes(format_duration(etcd.ttl)), format_duration(ttl_most));
  }
  if (etcd.forget_after < 3 * etcd.ttl) {
    add(problems, "peers.etcd.forget_after",
        "{} is too short: a node that restarts would be forgotten; expected at least three times the ttl",
        in_quotes(format_duration(etcd.forget_after)));
  }
}

// Whether there are listeners on `port`, and all of them expect TLS.
bool speaks_only_tls(const Config& config, std::uint16_t port) {
  const auto is_on_port = [&](const Listener& each) { return each.unix_path.empty() && each.port == port; };
  return std::ranges::any_of(config.listen, is_on_port) &&
         std::ranges::all_of(config.listen,
                             [&](const Listener& each) { return !is_on_port(each) || each.tls.has_value(); });
}

void check_own_url(const Config& config, Problems& problems) {
  const std::string key = "peers.etcd.url";
  const std::string& url = config.peers.etcd->url;
  if (url.empty()) {
    if (advertised_url(config)) return;
    return add(problems, key,
               "is required, because no listener has a fixed port and an address that other nodes reach "
               "(neither loopback nor a wildcard): such as \"http://10.0.0.1:7420\"");
  }
  const auto endpoint = base::parse_endpoint(url);
  if (!endpoint) return add(problems, key, "{}", endpoint.error().message);
  if (!endpoint->is_tls && !endpoint->is_unix() && speaks_only_tls(config, endpoint->port)) {
    add(problems, key, "{} is wrong: the listener on port {} expects TLS; give an https:// URL",
        in_quotes(url), endpoint->port);
  }
}

// --- auth ---

void check_role(const std::string& key, Role role, Problems& problems) {
  if (role == Role::none) add(problems, key + ".role", "expected \"mark\", \"read\", \"peer\" or \"admin\"");
}

void check_token(const std::string& key, const Token& token, Problems& problems) {
  if (!is_name(token.name)) {
    add(problems, key + ".name",
        "a token needs a name, which logs and metrics show: 1 to 64 of A-Z a-z 0-9 . _ -");
  }
  check_role(key, token.role, problems);
  const bool is_sha256 = token.sha256.size() == sha256_digits &&
                         token.sha256.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (token.sha256.empty() == token.file.empty()) {
    add(problems, key, "expected either 'file', which contains the token, or its 'sha256', and not both");
  } else if (!token.sha256.empty() && !is_sha256) {
    add(problems, key + ".sha256",
        "expected the SHA-256 of the token, 64 hexadecimal digits: printf %s TOKEN | sha256sum");
  } else {
    check_secret_file(key + ".file", token.file, problems);
  }
}

void check_auth(const Config::Auth& auth, Problems& problems) {
  check_each("auth.tokens", auth.tokens,
             [&](const std::string& key, const Token& token) { check_token(key, token, problems); });
  check_each("auth.unix", auth.unix_peers, [&](const std::string& key, const UnixRule& rule) {
    if (rule.user.empty() == rule.group.empty()) add(problems, key, "expected either 'user' or 'group'");
    check_role(key, rule.role, problems);
  });
  check_each("auth.certificates", auth.certificates, [&](const std::string& key, const auto& rule) {
    if (rule.name.empty()) add(problems, key + ".name", "expected a name, such as \"*.nodes.example\"");
    check_role(key, rule.role, problems);
  });
}

// --- publish ---

// For Kafka and NATS; a subject to which one publishes has no wildcard and no empty part.
bool is_topic(const std::string& text) {
  return is_name(text, topic_bytes_max) && !text.starts_with('.') && !text.ends_with('.') &&
         text.find("..") == std::string::npos;
}

void check_sink_client(const std::string& key, const Sink& sink, const SinkUrl& url, Problems& problems) {
  check_secret_file(key + ".password_file", sink.password_file, problems);
  check_secret_file(key + ".token_file", sink.token_file, problems);
  check_tls_client(key + ".tls", sink.tls, problems);
  if (!sink.password_file.empty() && sink.user.empty()) add(problems, key + ".user", "whose password is it?");
  const bool is_http_or_nats = url.kind == SinkKind::http || url.kind == SinkKind::nats;
  if (!sink.token_file.empty() && !is_http_or_nats)
    add(problems, key + ".token_file", "only http, https, nats and tls URLs have a token");
  if (!sink.token_file.empty() && !sink.user.empty())
    add(problems, key, "expected either 'token_file', or 'user' and 'password_file'");
  if (!sink.user.empty() && url.kind == SinkKind::http)
    add(problems, key + ".user", "an HTTP sink has a 'token_file' instead");
  if (sink.tls && url.kind == SinkKind::postgresql && sink.tls->ca.empty()) {
    add(problems, key + ".tls.ca",
        "PostgreSQL's library does not use the authorities that the system trusts");
  }
  if (sink.tls && is_http_or_nats && !url.is_tls)
    add(problems, key + ".url", "with 'tls' the URL starts with https:// (HTTP) or tls:// (NATS)");
}

void check_sink(const std::string& key, const Sink& sink, Problems& problems) {
  if (!is_name(sink.name)) {
    add(problems, key + ".name",
        "a sink needs a name, which logs and metrics show: 1 to 64 of A-Z a-z 0-9 . _ -");
  }
  if (!is_topic(sink.topic)) {
    add(problems, key + ".topic",
        "{} is wrong: expected 1 to {} of A-Z a-z 0-9 . _ -, no empty part between dots",
        in_quotes(sink.topic), topic_bytes_max);
  }
  const auto url = parse_sink_url(sink.url);
  if (!url) return add(problems, key + ".url", "{}", url.error().message);
  check_sink_client(key, sink, *url, problems);
}

void check_publish(const std::vector<Sink>& sinks, Problems& problems) {
  if (sinks.size() > sinks_max) add(problems, "publish.sinks", "at most {} sinks are possible", sinks_max);
  check_each("publish.sinks", sinks, [&](const std::string& key, const Sink& sink) {
    check_sink(key, sink, problems);
    if (&*std::ranges::find(sinks, sink.name, &Sink::name) != &sink)
      add(problems, key + ".name", "{} is the name of another sink", in_quotes(sink.name));
  });
}

}  // namespace

void check_network(const Config& config, Problems& problems) {
  check_listeners(config, problems);
  if (config.peers.etcd) {
    check_etcd_client(*config.peers.etcd, problems);
    check_etcd_settings(*config.peers.etcd, problems);
    check_own_url(config, problems);
  }
  check_auth(config.auth, problems);
  check_secret_file("peers.token_file", config.peers.token_file, problems);
  check_tls_client("peers.tls", config.peers.tls, problems);
  check_publish(config.publish.sinks, problems);
}

}  // namespace spoor::config
