// Checks `listen`.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <optional>
#include <string>

#include "config/check.h"
#include "config/secret_file.h"

namespace spoor::config {
namespace {

// Including the terminating NUL.
constexpr std::size_t socket_path_bytes_max = sizeof(sockaddr_un::sun_path);

// Why `path` cannot be a Unix socket; std::nullopt if it can.
std::optional<std::string> socket_path_problem(const std::string& path) {
  if (path.find('\0') != std::string::npos) return "it contains a NUL byte";
  if (!path.starts_with('/')) return "expected an absolute path, such as /run/spoor/spoor.sock";
  if (path.size() >= socket_path_bytes_max) {
    return fmt::format("a socket's path must be shorter than {} bytes, this one has {}",
                       socket_path_bytes_max, path.size());
  }
  return std::nullopt;
}

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

// Why the settings that only a Unix socket or only an address may have are wrong; std::nullopt if they are
// valid.
std::optional<std::string> extras_problem(const Listener& listener) {
  if (listener.unix_path.empty()) {
    if (!listener.mode.empty() || !listener.group.empty()) return "only a Unix socket has 'mode' and 'group'";
    if (!listener.tls) return std::nullopt;
    if (listener.tls->certificate.empty() || listener.tls->key.empty()) {
      return "'tls' needs a 'certificate' and its 'key'";
    }
    for (const auto& file : {listener.tls->certificate, listener.tls->key, listener.tls->client_ca}) {
      if (file.empty()) continue;
      if (const auto why = secret_file_problem(file))
        return fmt::format("{}: {}", in_quotes(file.native()), *why);
    }
    return std::nullopt;
  }
  if (listener.tls) return "there is no TLS on a Unix socket: the kernel reports the user of the client";
  if (!listener.mode.empty() && !is_octal_mode(listener.mode)) {
    return fmt::format("'mode' {} is wrong: expected three octal digits, such as \"0660\"",
                       in_quotes(listener.mode));
  }
  return std::nullopt;
}

// Why `listener` is invalid; std::nullopt if it is valid.
std::optional<std::string> listener_problem(const Listener& listener, const Config::Auth& auth) {
  const bool has_unix = !listener.unix_path.empty();
  if (listener.address.empty() != has_unix) {
    return "expected either 'address' and 'port', or 'unix', and not both";
  }
  if (auto why = extras_problem(listener)) return why;
  if (has_unix) {
    const auto why = socket_path_problem(listener.unix_path.native());
    if (!why) return std::nullopt;
    return fmt::format("{} is wrong: {}", in_quotes(listener.unix_path.native()), *why);
  }
  const Reach reach = reach_of(listener.address);
  if (reach == Reach::not_an_address) {
    return fmt::format("{} is wrong: expected an IP address, such as \"127.0.0.1\" or \"::1\"",
                       in_quotes(listener.address));
  }
  if (listener.insecure) return std::nullopt;
  const bool asks_for_certificates = listener.tls && !listener.tls->client_ca.empty();
  if (asks_for_certificates && auth.certificates.empty() && auth.tokens.empty()) {
    return "no client would have a role on this listener: set auth.certificates or auth.tokens";
  }
  if (reach == Reach::this_machine || asks_for_certificates || !auth.tokens.empty()) return std::nullopt;
  return fmt::format(
      "{} is refused: other machines reach it, and clients are not authenticated; set 'client_ca' in "
      "'tls', or set auth.tokens, or accept the risk with \"insecure\": true on this listener",
      in_quotes(listener.address));
}

}  // namespace

void check_endpoints(const Config& config, Problems& problems) {
  if (config.listen.empty()) {
    add(problems, "listen", "at least one listener is required, or no client could reach the daemon");
  }
  for (std::size_t i = 0; i < config.listen.size(); ++i) {
    const auto why = listener_problem(config.listen[i], config.auth);
    if (why) add(problems, fmt::format("listen[{}]", i), *why);
  }
}

}  // namespace spoor::config
