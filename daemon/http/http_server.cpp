#include "daemon/http/http_server.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <cerrno>
#include <exception>
#include <functional>
#include <stop_token>
#include <utility>

#include "base/file_system.h"
#include "daemon/http/http_worker.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;

constexpr unsigned threads_max = 256;  // as in the configuration

error_code last_errno() { return {errno, boost::system::system_category()}; }

// Of a socket that listens on an IP address or a path.
std::string url_of(int socket, bool is_tls, error_code& error) {
  unix_stream::endpoint address;  // larger than that of TCP
  auto size = static_cast<socklen_t>(address.capacity());
  if (::getsockname(socket, address.data(), &size) != 0) {
    error = last_errno();
    return {};
  }
  address.resize(size);
  if (address.data()->sa_family == AF_UNIX) return "unix:" + address.path();
  tcp::endpoint endpoint;
  std::copy_n(reinterpret_cast<const char*>(address.data()), size, reinterpret_cast<char*>(endpoint.data()));
  const std::string ip = endpoint.address().to_string();
  return fmt::format("{}://{}:{}", is_tls ? "https" : "http",
                     endpoint.address().is_v6() ? fmt::format("[{}]", ip) : ip, endpoint.port());
}

// Ends at the latest when its thread is joined.
void run_until_joined(const std::stop_token& joined, asio::io_context& context) {
  const std::stop_callback stop(joined, [&context] { context.stop(); });
  context.run();
}

}  // namespace

HttpLimits share_of(HttpLimits limits, std::size_t threads) {
  if (threads == 1) return limits;
  limits.connections_max = std::max<std::size_t>(limits.connections_max / threads, 1);
  limits.bodies_bytes_max = std::max(limits.bodies_bytes_max / threads, limits.body_bytes_max);
  return limits;
}

HttpServer::HttpServer(asio::io_context& context, const HttpLimits& limits, std::size_t threads)
    : context_(context) {
  if (threads == 0) threads = std::clamp(std::thread::hardware_concurrency(), 1U, threads_max);
  while (others_.size() + 1 < threads) others_.push_back(std::make_unique<asio::io_context>(1));
  const auto accept_error = std::make_shared<AcceptError>();
  const auto add_worker = [&](asio::io_context& of_thread) {
    workers_.push_back(
        std::make_shared<HttpWorker>(of_thread, share_of(limits, threads), threads, totals_, accept_error));
  };
  add_worker(context);
  for (const auto& other : others_) add_worker(*other);
}

HttpServer::~HttpServer() {
  for (const auto& worker : workers_) worker->forget_stop();
}

std::vector<asio::io_context*> HttpServer::others() const {
  std::vector<asio::io_context*> all;
  all.reserve(others_.size());
  for (const auto& each : others_) all.push_back(each.get());
  return all;
}

base::Result<std::string> HttpServer::listen(const TcpListener& listener) {
  error_code error;
  auto ip = asio::ip::make_address(listener.address, error);
  if (error) return base::Error(error, fmt::format("'{}' is not an IP address", listener.address));
  // IPv6 sockets do not accept IPv4 connections, so that an IPv4 and an IPv6 listener can use the same port.
  if (ip.is_v6() && ip.to_v6().is_v4_mapped())
    ip = asio::ip::make_address_v4(asio::ip::v4_mapped, ip.to_v6());
  asio::io_context unused;
  tcp::acceptor acceptor(unused);
  const tcp::endpoint endpoint(ip, listener.port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && ip.is_v6()) acceptor.set_option(asio::ip::v6_only(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) {
    return base::Error(error, fmt::format("cannot listen on {} port {}: {}", listener.address, listener.port,
                                          error.message()));
  }
  return adopt(acceptor.release(), listener.caller, listener.tls);
}

base::Result<std::string> HttpServer::adopt(int descriptor, const Caller& caller,
                                            std::shared_ptr<TlsServer> tls) {
  const base::Descriptor socket(descriptor);
  error_code error;
  std::string url = url_of(descriptor, tls != nullptr, error);
  for (const auto& worker : workers_) {
    if (!error) error = worker->listen(descriptor, caller, tls);
  }
  if (error) {
    return base::Error(
        error,
        fmt::format("cannot serve {}: {}",
                    url.empty() ? fmt::format("the socket passed as {}", descriptor) : url, error.message()));
  }
  if (tls) tls_.push_back(std::move(tls));
  return url;
}

base::Result<std::string> HttpServer::listen(const UnixListener& listener) {
  const std::filesystem::path& path = listener.path;
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);  // bind() reports the error
  error_code error;
  asio::io_context unused;
  if (std::filesystem::is_socket(path, ignored)) {
    unix_stream::socket probe(unused);
    probe.connect(unix_stream::endpoint(path.native()), error);
    if (!error) {
      return base::Error(std::make_error_code(std::errc::address_in_use),
                         fmt::format("cannot listen on {}: another process serves it", path.native()));
    }
    std::filesystem::remove(path, ignored);
    error = {};
  }
  unix_stream::acceptor acceptor(unused);
  acceptor.open(unix_stream(), error);
  if (!error) acceptor.bind(unix_stream::endpoint(path.native()), error);
  constexpr auto same_user = static_cast<uid_t>(-1);
  if (!error && listener.group && ::chown(path.c_str(), same_user, *listener.group) != 0) {
    error = last_errno();
    return base::Error(error, fmt::format("cannot listen on {}: cannot change its group, which the daemon's "
                                          "user must be a member of: {}",
                                          path.native(), error.message()));
  }
  if (!error && ::chmod(path.c_str(), listener.mode) != 0) error = last_errno();
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return base::Error(error, fmt::format("cannot listen on {}: {}", path.native(), error.message()));
  files_.push_back(path);
  return adopt(acceptor.release(), listener.caller);
}

void HttpServer::start(const HttpService& service) {
  for (const auto& worker : workers_) worker->start(service);
  for (const auto& each : others_) threads_.emplace_back(run_until_joined, std::ref(*each));
}

void HttpServer::set_limits(const HttpLimits& limits) {
  for (const auto& worker : workers_) worker->set_limits(share_of(limits, workers_.size()));
}

std::optional<base::WallTime> HttpServer::certificates_valid_until() const {
  if (tls_.empty()) return std::nullopt;
  return (*std::ranges::min_element(tls_, {}, [](const auto& each) { return each->valid_until(); }))
      ->valid_until();
}

void HttpServer::run() {
  try {
    context_.run();
    threads_.clear();
  } catch (const std::exception& failure) {
    if (threads_.empty()) throw;
    // Coroutines of the other threads refer to objects of this one and vice versa: an orderly stop is
    // impossible.
    spdlog::critical("spoord terminates because of an internal error: {}", failure.what());
    std::terminate();
  }
}

// The work guard keeps `context` running, as requests on other threads may need its thread until they end.
void HttpServer::stop() {
  if (std::exchange(stopping_, true)) return;
  std::error_code gone;
  for (const auto& file : files_) std::filesystem::remove(file, gone);
  for (const auto& worker : workers_) worker->stop([guard = asio::make_work_guard(context_)] {});
}

}  // namespace spoor::daemon
