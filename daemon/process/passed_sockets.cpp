#include "daemon/process/passed_sockets.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>

#include <algorithm>
#include <array>
#include <boost/asio/ip/address.hpp>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "config/validate.h"

namespace spoor::daemon {
namespace {

base::Error refusal(const std::string& message) {
  return {std::make_error_code(std::errc::invalid_argument), message};
}

// Owns a null-terminated list that sd-daemon allocated.
class Names {
 public:
  Names() = default;
  ~Names() {
    for (char** name = list_; name != nullptr && *name != nullptr; ++name) std::free(*name);
    std::free(static_cast<void*>(list_));
  }
  Names(const Names&) = delete;
  Names& operator=(const Names&) = delete;

  char*** out() { return &list_; }
  std::string at(std::size_t index) const { return list_ == nullptr ? "" : list_[index]; }

 private:
  char** list_ = nullptr;
};

template <class Address>
Address as(const sockaddr_storage& storage) {
  Address address{};
  std::memcpy(&address, &storage, sizeof(address));
  return address;
}

std::string to_text(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  ::inet_ntop(family, address, text.data(), text.size());
  return text.data();
}

// The address of the socket; std::nullopt if it is neither an IP address nor a path.
std::optional<config::Listener> listener_of(int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  if (::getsockname(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
  if (storage.ss_family == AF_INET) {
    const auto address = as<sockaddr_in>(storage);
    return config::Listener{.address = to_text(AF_INET, &address.sin_addr), .port = ntohs(address.sin_port)};
  }
  if (storage.ss_family == AF_INET6) {
    const auto address = as<sockaddr_in6>(storage);
    return config::Listener{.address = to_text(AF_INET6, &address.sin6_addr),
                            .port = ntohs(address.sin6_port)};
  }
  if (storage.ss_family == AF_UNIX) {
    const auto address = as<sockaddr_un>(storage);
    const std::string path(address.sun_path, ::strnlen(address.sun_path, sizeof(address.sun_path)));
    if (!path.empty()) return config::Listener{.unix_path = path};  // an abstract name begins with a NUL
  }
  return std::nullopt;
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

}  // namespace

base::Result<std::vector<PassedSocket>> take_passed_sockets() {
  constexpr int not_again = 1;  // unset the variables: later calls and child processes find no sockets
  Names names;
  const int count = ::sd_listen_fds_with_names(not_again, names.out());
  if (count < 0) {
    const std::error_code error(-count, std::generic_category());
    return base::Error(error, fmt::format("cannot take the sockets that the service manager passed "
                                          "(LISTEN_FDS, LISTEN_PID): {}",
                                          error.message()));
  }
  std::vector<PassedSocket> sockets;
  for (int i = 0; i < count; ++i) {
    auto socket = examine(SD_LISTEN_FDS_START + i, names.at(static_cast<std::size_t>(i)));
    if (!socket) return socket.error();
    sockets.push_back(*std::move(socket));
  }
  return sockets;
}

bool is_for(const PassedSocket& socket, const config::Listener& listener) {
  const config::Listener& own = socket.listener;
  if (!own.unix_path.empty() || !listener.unix_path.empty()) {
    return own.unix_path.lexically_normal() == listener.unix_path.lexically_normal();
  }
  if (own.port != listener.port) return false;
  boost::system::error_code error;
  const auto address = boost::asio::ip::make_address(listener.address, error);
  return !error && address == boost::asio::ip::make_address(own.address, error) && !error;
}

base::Result<config::Config> with_listeners_for(const std::vector<PassedSocket>& sockets,
                                                config::Config config) {
  std::vector<const PassedSocket*> seen;
  for (const PassedSocket& socket : sockets) {
    const auto same = [&](const PassedSocket* other) { return is_for(*other, socket.listener); };
    if (std::any_of(seen.begin(), seen.end(), same)) {
      return refusal(
          fmt::format("the service manager passed two sockets on {}: keep one of them in the socket units",
                      where(socket.listener)));
    }
    seen.push_back(&socket);
    const auto matches = [&](const config::Listener& listener) { return is_for(socket, listener); };
    if (std::any_of(config.listen.begin(), config.listen.end(), matches)) continue;
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

}  // namespace spoor::daemon
