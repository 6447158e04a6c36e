#include "daemon/listeners.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "config/check.h"
#include "config/secret_file.h"
#include "daemon/api/access.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

// A socket that the service manager opened for this process ("socket activation", sd_listen_fds(3)).
struct PassedSocket {
  int descriptor = -1;        // not closed by this struct; HttpServer::adopt() takes ownership
  std::string name;           // of the socket unit, or as set by FileDescriptorName=
  config::Listener listener;  // its address
};

using PassedSockets = std::vector<PassedSocket>;

base::Error refusal(const std::string& message) {
  return {std::make_error_code(std::errc::invalid_argument), message};
}

// Takes the names of so many sockets from a list that sd-daemon allocated, which it frees.
std::vector<std::string> take_names(char** list, int count) {
  std::vector<std::string> names(static_cast<std::size_t>(std::max(count, 0)));
  for (std::size_t i = 0; list != nullptr && list[i] != nullptr; ++i) {
    if (i < names.size()) names[i] = list[i];
    std::free(list[i]);
  }
  std::free(static_cast<void*>(list));
  return names;
}

// The address of the socket; std::nullopt if it is neither an IP address nor a path.
std::optional<config::Listener> listener_of(int descriptor) {
  asio::local::stream_protocol::endpoint address;  // larger than one of TCP
  auto size = static_cast<socklen_t>(address.capacity());
  if (::getsockname(descriptor, address.data(), &size) != 0) return std::nullopt;
  address.resize(size);
  const int family = address.data()->sa_family;
  if (family == AF_UNIX) {
    const std::string path = address.path();
    if (path.empty() || path.front() == '\0') return std::nullopt;  // unnamed, or an abstract name
    return config::Listener{.unix_path = path};
  }
  if (family != AF_INET && family != AF_INET6) return std::nullopt;
  asio::ip::tcp::endpoint endpoint;
  std::memcpy(endpoint.data(), address.data(), size);
  auto ip = endpoint.address();
  if (ip.is_v6()) ip = asio::ip::address_v6(ip.to_v6().to_bytes());  // without its scope
  return config::Listener{.address = ip.to_string(), .port = endpoint.port()};
}

std::string where(const config::Listener& listener) {
  if (!listener.unix_path.empty()) return listener.unix_path.native();
  return fmt::format("{} port {}", listener.address, listener.port);
}

base::Result<PassedSocket> examine(int descriptor, std::string name) {
  const bool listens = ::sd_is_socket(descriptor, AF_UNSPEC, SOCK_STREAM, 1) > 0;
  auto listener = listens ? listener_of(descriptor) : std::nullopt;
  if (!listener) {
    return refusal(fmt::format(
        "the service manager passed a socket ('{}', descriptor {}) that can't be served: the socket unit "
        "needs ListenStream= with an address and port or an absolute path, and no Accept=yes",
        name, descriptor));
  }
  return PassedSocket{descriptor, std::move(name), *std::move(listener)};
}

// All of them at the first call; later calls return none. Fails if one is not a listening TCP socket or a
// listening Unix socket with a path.
base::Result<PassedSockets> take_passed_sockets() {
  constexpr int not_again = 1;  // unset the variables: later calls and child processes find no sockets
  char** list = nullptr;
  const int count = ::sd_listen_fds_with_names(not_again, &list);
  std::vector<std::string> names = take_names(list, count);
  if (count < 0) {
    const std::error_code error(-count, std::generic_category());
    return base::Error(error, fmt::format("cannot take the sockets that the service manager passed "
                                          "(LISTEN_FDS, LISTEN_PID): {}",
                                          error.message()));
  }
  PassedSockets sockets;
  for (int i = 0; i < count; ++i) {
    auto socket = examine(SD_LISTEN_FDS_START + i, std::move(names[static_cast<std::size_t>(i)]));
    if (!socket) return socket.error();
    sockets.push_back(*std::move(socket));
  }
  return sockets;
}

// Whether the socket has the address or path of this listener of the configuration.
bool is_for(const PassedSocket& socket, const config::Listener& listener) {
  const config::Listener& own = socket.listener;
  if (!own.unix_path.empty() || !listener.unix_path.empty()) {
    return own.unix_path.lexically_normal() == listener.unix_path.lexically_normal();
  }
  if (own.port != listener.port) return false;
  boost::system::error_code error;
  const auto address = asio::ip::make_address(listener.address, error);
  return !error && address == asio::ip::make_address(own.address, error) && !error;
}

const PassedSocket* socket_for(const PassedSockets& passed, const config::Listener& listener) {
  const auto socket =
      std::ranges::find_if(passed, [&](const PassedSocket& each) { return is_for(each, listener); });
  return socket == passed.end() ? nullptr : &*socket;
}

// `config` with an added listener for each socket that is not in `listen`. Fails if such a listener would be
// invalid, or if two sockets have the same address.
base::Result<config::Config> with_listeners_for(const PassedSockets& sockets, config::Config config) {
  for (const PassedSocket& socket : sockets) {
    if (socket_for(sockets, socket.listener) != &socket) {
      return refusal(
          fmt::format("the service manager passed two sockets on {}: keep one of them in the socket units",
                      where(socket.listener)));
    }
    const auto matches = [&](const config::Listener& listener) { return is_for(socket, listener); };
    if (std::ranges::any_of(config.listen, matches)) continue;
    config.listen.push_back(socket.listener);
    const auto problems = config::validate(config);
    if (problems.empty()) continue;
    return refusal(fmt::format(
        "the service manager passed a socket ('{}') on {}, which is not in listen and needs further "
        "settings: {}. Add it to listen with these settings, or remove it from the socket unit",
        socket.name, where(socket.listener), fmt::join(problems, "; ")));
  }
  return config;
}

bool asks_for_certificates(const config::Listener& listener) {
  return listener.tls && !listener.tls->client_ca.empty();
}

// Whether its clients may do no more than mark, as long as auth.tokens is empty.
bool marks_without_tokens(const config::Listener& listener) {
  return listener.unix_path.empty() && !listener.insecure && !asks_for_certificates(listener);
}

base::Result<std::string> listen_tcp(HttpServer& server, const config::Listener& listener,
                                     const PassedSocket* socket, base::WallTime now) {
  const bool is_local = asio::ip::make_address(listener.address).is_loopback();
  HttpServer::TcpListener tcp{.address = listener.address,
                              .port = listener.port,
                              .caller = {.is_trusted = listener.insecure,
                                         .marks_without_tokens = is_local && !asks_for_certificates(listener),
                                         .is_tls = listener.tls.has_value(),
                                         .is_loopback = is_local,
                                         .gets_page = listener.page}};
  if (listener.tls) {
    auto tls = load_tls(*listener.tls);
    if (!tls) return tls.error();
    tcp.tls = *std::move(tls);
    if (const auto expiry = tcp.tls->expiry(now)) spdlog::error("{}: peers refuse it", *expiry);
  }
  auto url = socket == nullptr ? server.listen(tcp) : server.adopt(socket->descriptor, tcp.caller, tcp.tls);
  if (!url) return url;
  if (listener.insecure) spdlog::warn("{} does not authenticate clients (\"insecure\": true)", *url);
  if (!listener.insecure && !listener.tls && !is_local) {
    spdlog::warn("{} accepts tokens in plain text, which other hosts on the network can read: give it 'tls'",
                 *url);
  }
  return url;
}

base::Result<std::string> listen_unix(HttpServer& server, const config::Listener& listener,
                                      const PassedSocket* socket_passed) {
  const Caller caller{.gets_page = listener.page};
  if (socket_passed != nullptr) return server.adopt(socket_passed->descriptor, caller);
  HttpServer::UnixListener socket{.path = listener.unix_path, .caller = caller};
  if (!listener.mode.empty()) socket.mode = static_cast<mode_t>(std::stoul(listener.mode, nullptr, 8));
  if (!listener.group.empty()) {
    const auto group = socket_group(listener);
    if (!group) return group.error();
    socket.group = *group;
  }
  return server.listen(socket);
}

base::Result<std::string> open(HttpServer& server, const config::Listener& listener,
                               const PassedSockets& passed, base::WallTime now) {
  const PassedSocket* const socket = socket_for(passed, listener);
  auto url = listener.unix_path.empty() ? listen_tcp(server, listener, socket, now)
                                        : listen_unix(server, listener, socket);
  if (url && socket != nullptr) {
    spdlog::info("{} was opened by the service manager ('{}')", *url, socket->name);
  }
  return url;
}

}  // namespace

base::Result<std::shared_ptr<TlsServer>> load_tls(const config::Tls& files) {
  const auto certificate = config::secret_file(files.certificate);
  if (!certificate) return certificate.error();
  const auto key = config::secret_file(files.key);
  if (!key) return key.error();
  const auto client_ca = config::secret_file(files.client_ca);
  if (!client_ca) return client_ca.error();
  return TlsServer::load({*certificate, *key, *client_ca});
}

base::Result<gid_t> socket_group(const config::Listener& listener) {
  auto group = group_id(listener.group);
  if (!group) return base::wrap("the listener " + listener.unix_path.native(), group.error());
  return group;
}

base::Result<std::vector<std::string>> open_listeners(HttpServer& server, const config::Config& config,
                                                      base::WallTime now) {
  const auto passed = take_passed_sockets();
  if (!passed) return passed.error();
  const auto all = with_listeners_for(*passed, config);
  if (!all) return all.error();
  std::vector<std::string> urls;
  bool accepts_marks_only = config.auth.tokens.empty();
  for (const config::Listener& listener : all->listen) {
    const auto url = open(server, listener, *passed, now);
    if (url) {
      urls.push_back(*url);
      accepts_marks_only = accepts_marks_only && marks_without_tokens(listener);
    } else if (config.listen_is_default && !listener.unix_path.empty()) {
      spdlog::warn("{}; starting without this listener", url.error().message);
    } else {
      return url.error();
    }
  }
  if (accepts_marks_only && !urls.empty()) {
    spdlog::warn(
        "clients may only mark, and no scan of this node succeeds: add a Unix socket to listen, set "
        "auth.tokens, or accept the risk with \"insecure\": true on a listener");
  }
  if (!urls.empty()) return urls;
  return base::Error(std::make_error_code(std::errc::invalid_argument), "nothing to listen on: set listen");
}

}  // namespace spoor::daemon
