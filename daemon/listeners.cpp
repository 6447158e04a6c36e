#include "daemon/listeners.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <utility>

#include "config/secret_file.h"
#include "daemon/api/access.h"
#include "daemon/process/passed_sockets.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

using PassedSockets = std::vector<PassedSocket>;

const PassedSocket* socket_for(const PassedSockets& passed, const config::Listener& listener) {
  const auto socket = std::find_if(passed.begin(), passed.end(),
                                   [&](const PassedSocket& each) { return is_for(each, listener); });
  return socket == passed.end() ? nullptr : &*socket;
}

base::Result<std::string> listen_tcp(HttpServer& server, const config::Listener& listener,
                                     const PassedSocket* socket, base::WallTime now,
                                     TlsServers& tls_servers) {
  const bool asks_for_certificates = listener.tls && !listener.tls->client_ca.empty();
  const bool is_local = asio::ip::make_address(listener.address).is_loopback();
  HttpServer::TcpListener tcp{.address = listener.address,
                              .port = listener.port,
                              .caller = {.is_trusted = listener.insecure,
                                         .is_trusted_without_tokens = is_local && !asks_for_certificates,
                                         .is_tls = listener.tls.has_value()}};
  if (listener.tls) {
    auto tls = load_tls(*listener.tls);
    if (!tls) return tls.error();
    tcp.tls = *std::move(tls);
    if (const auto expiry = tcp.tls->expiry(now)) spdlog::error("{}: peers refuse it", *expiry);
    tls_servers.push_back(tcp.tls);
  }
  auto url = socket == nullptr ? server.listen(tcp) : server.adopt(socket->descriptor, tcp);
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
  if (socket_passed != nullptr) return server.adopt_unix(socket_passed->descriptor);
  HttpServer::UnixListener socket{.path = listener.unix_path};
  if (!listener.mode.empty()) socket.mode = static_cast<mode_t>(std::stoul(listener.mode, nullptr, 8));
  if (!listener.group.empty()) {
    const auto group = socket_group(listener);
    if (!group) return group.error();
    socket.group = *group;
  }
  return server.listen(socket);
}

base::Result<std::string> open(HttpServer& server, const config::Listener& listener,
                               const PassedSockets& passed, base::WallTime now, TlsServers& tls_servers) {
  const PassedSocket* const socket = socket_for(passed, listener);
  auto url = listener.unix_path.empty() ? listen_tcp(server, listener, socket, now, tls_servers)
                                        : listen_unix(server, listener, socket);
  if (url && socket != nullptr) {
    spdlog::info("{} was opened by the service manager ('{}')", *url, socket->name);
  }
  return url;
}

// Adopts the sockets that were passed, and binds the other listeners. Returns the URLs.
base::Result<std::vector<std::string>> listen(HttpServer& server, const config::Config& config,
                                              const PassedSockets& passed, base::WallTime now,
                                              TlsServers& tls_servers) {
  std::vector<std::string> urls;
  for (const config::Listener& listener : config.listen) {
    const auto url = open(server, listener, passed, now, tls_servers);
    if (url) {
      urls.push_back(*url);
    } else if (config.listen_is_default && !listener.unix_path.empty()) {
      spdlog::warn("{}; starting without this listener", url.error().message);
    } else {
      return url.error();
    }
  }
  if (!urls.empty()) return urls;
  return base::Error(std::make_error_code(std::errc::invalid_argument), "nothing to listen on: set listen");
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
                                                      base::WallTime now, TlsServers& tls_servers) {
  const auto passed = take_passed_sockets();
  if (!passed) return passed.error();
  const auto all = with_listeners_for(*passed, config);
  if (!all) return all.error();
  return listen(server, *all, *passed, now, tls_servers);
}

}  // namespace spoor::daemon
