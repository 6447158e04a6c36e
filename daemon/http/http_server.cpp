#include "daemon/http/http_server.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <list>
#include <type_traits>
#include <utility>

#include "daemon/http/http_worker.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;

constexpr std::chrono::milliseconds accept_pause{100};  // after an error: no file descriptors are left
constexpr std::chrono::minutes complaint_pause{1};
// How many connections may be refused at a time: each waits for its client to read the response. As many
// evicted ones may not have ended yet. Both together keep within the open files that options.cpp reserves.
constexpr std::size_t refusals_least = 8;
constexpr std::size_t ending_share = 16;

// The process at the other end; std::nullopt if the kernel does not report it.
std::optional<UnixPeer> peer_of(int socket) {
  ucred who{};
  socklen_t size = sizeof who;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0) return std::nullopt;
  UnixPeer peer{who.uid, {who.gid}};
  std::vector<gid_t> groups(64);
  size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  if (got != 0 && errno == ERANGE) {
    groups.resize(size / sizeof(gid_t));
    got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size);
  }
  if (got == 0) {
    groups.resize(size / sizeof(gid_t));
    peer.groups.insert(peer.groups.end(), groups.begin(), groups.end());
  }
  return peer;
}

std::string url_of(const tcp::endpoint& endpoint, bool is_tls) {
  const std::string address = endpoint.address().to_string();
  return fmt::format("{}://{}:{}", is_tls ? "https" : "http",
                     endpoint.address().is_v6() ? fmt::format("[{}]", address) : address, endpoint.port());
}

base::Error not_served(int descriptor, const error_code& error) {
  return {static_cast<std::error_code>(error),
          fmt::format("cannot serve the socket passed as {}: {}", descriptor, error.message())};
}

// Logs that connections cannot be accepted, and that they can be again: each at most once a minute, even if
// the two alternate.
class AcceptError {
 public:
  void failed(const error_code& error) {
    const auto now = Clock::now();
    if (is_said_ || (said_at_ && now - *said_at_ < complaint_pause)) return;
    is_said_ = true;
    said_at_ = now;
    spdlog::warn("cannot accept connections: {}; new connections wait until it succeeds", error.message());
  }
  void over() {
    if (std::exchange(is_said_, false)) spdlog::info("connections are accepted again");
  }

 private:
  using Clock = asio::steady_timer::clock_type;

  bool is_said_ = false;
  std::optional<Clock::time_point> said_at_;
};

}  // namespace

struct HttpServer::Impl : std::enable_shared_from_this<HttpServer::Impl> {
  struct TcpAcceptor {
    tcp::acceptor acceptor;
    Caller caller;
    std::shared_ptr<TlsServer> tls;
  };
  struct UnixAcceptor {
    unix_stream::acceptor acceptor;
    std::filesystem::path file;  // empty: stop() removes no file
    Caller caller;
  };

  Impl(asio::io_context& the_context, const HttpLimits& its_limits,
       const std::vector<asio::io_context*>& others)
      : context(the_context), limits(its_limits) {
    workers.push_back(std::make_shared<HttpWorker>(context, limits, totals));
    for (asio::io_context* const other : others)
      workers.push_back(std::make_shared<HttpWorker>(*other, limits, totals));
  }

  template <class Listening>
  asio::awaitable<void> accept(Listening& listening);
  static Caller caller_of(const TcpAcceptor& listening, tcp::socket& socket);
  static Caller caller_of(const UnixAcceptor& listening, unix_stream::socket& socket);
  bool find_place(HttpPlace& place) const;
  HttpWorker& next_worker() { return *workers[turn++ % workers.size()]; }
  void stop();
  void stop_workers();

  asio::io_context& context;
  HttpLimits limits;
  const std::shared_ptr<HttpTotals> totals = std::make_shared<HttpTotals>();
  std::vector<std::shared_ptr<HttpWorker>> workers;
  std::size_t turn = 0;
  std::list<TcpAcceptor> tcp_acceptors;
  std::list<UnixAcceptor> unix_acceptors;
  std::size_t accepting = 0;  // how many accept() coroutines run
  AcceptError accept_error;
  bool stopping = false;
};

Caller HttpServer::Impl::caller_of(const TcpAcceptor& listening, tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  Caller caller = listening.caller;
  const auto other_end = socket.remote_endpoint(ignored);
  if (!ignored) caller.address = other_end.address().to_string();
  return caller;
}

Caller HttpServer::Impl::caller_of(const UnixAcceptor& listening, unix_stream::socket& socket) {
  Caller caller = listening.caller;
  caller.unix_peer = peer_of(socket.native_handle());
  return caller;
}

template <class Listening>
asio::awaitable<void> HttpServer::Impl::accept(Listening& listening) {
  const auto self = shared_from_this();
  asio::steady_timer pause(context);
  while (listening.acceptor.is_open()) {
    HttpWorker& worker = next_worker();
    const asio::any_io_executor executor = worker.context().get_executor();
    auto [error, socket] = co_await listening.acceptor.async_accept(executor, as_result);
    if (error == asio::error::operation_aborted) break;
    if (error) {
      accept_error.failed(error);
      pause.expires_after(accept_pause);
      co_await pause.async_wait(as_result);
      continue;
    }
    accept_error.over();
    Caller caller = caller_of(listening, socket);
    auto place = std::make_unique<HttpPlace>(totals->places, caller, socket.native_handle());
    if (!find_place(*place)) {
      ++totals->refused;
      continue;
    }
    std::shared_ptr<asio::ssl::context> tls;
    if constexpr (std::is_same_v<Listening, TcpAcceptor>) {
      if (listening.tls) tls = listening.tls->context();
    }
    worker.take(std::move(place), HttpSession::Socket(std::move(socket)), std::move(caller), std::move(tls));
  }
  if (--accepting == 0) stop_workers();
}

// Returns false for a connection that is to be closed without a word: one beyond the limit still gets a
// response, unless too many do already, and none is evicted while too many that were have not ended.
bool HttpServer::Impl::find_place(HttpPlace& place) const {
  const std::size_t most = limits.connections_max;
  const std::size_t ending = totals->places->ending();
  if (ending > 2 * (most / ending_share + refusals_least)) return false;
  return place.serve(most, limits.yield_after) || ending <= most / ending_share + refusals_least;
}

void HttpServer::Impl::stop() {
  if (std::exchange(stopping, true)) return;
  error_code ignored;
  for (TcpAcceptor& each : tcp_acceptors) each.acceptor.close(ignored);
  for (UnixAcceptor& each : unix_acceptors) {
    each.acceptor.close(ignored);
    std::error_code gone;
    if (!each.file.empty()) std::filesystem::remove(each.file, gone);
  }
  if (accepting == 0) stop_workers();
}

// After the last connection has been accepted. The work guard keeps `context` running, as requests on other
// threads may need its thread until they end.
void HttpServer::Impl::stop_workers() {
  for (const auto& worker : workers) worker->stop([guard = asio::make_work_guard(context)] {});
}

HttpServer::HttpServer(asio::io_context& context, const HttpLimits& limits,
                       const std::vector<asio::io_context*>& others)
    : impl_(std::make_shared<Impl>(context, limits, others)) {}

HttpServer::~HttpServer() {
  for (const auto& worker : impl_->workers) worker->forget_stop();
}

base::Result<std::string> HttpServer::listen(const TcpListener& listener) {
  error_code error;
  auto ip = asio::ip::make_address(listener.address, error);
  if (error) return base::Error(error, fmt::format("'{}' is not an IP address", listener.address));
  // IPv6 sockets do not accept IPv4 connections, so that an IPv4 and an IPv6 listener can use the same port.
  if (ip.is_v6() && ip.to_v6().is_v4_mapped())
    ip = asio::ip::make_address_v4(asio::ip::v4_mapped, ip.to_v6());
  tcp::acceptor acceptor(impl_->context);
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
  std::string url = url_of(acceptor.local_endpoint(), listener.tls != nullptr);
  impl_->tcp_acceptors.push_back({std::move(acceptor), listener.caller, listener.tls});
  return url;
}

base::Result<std::string> HttpServer::adopt(int descriptor, const TcpListener& listener) {
  int family = AF_INET;
  socklen_t size = sizeof(family);
  ::getsockopt(descriptor, SOL_SOCKET, SO_DOMAIN, &family, &size);
  tcp::acceptor acceptor(impl_->context);
  error_code error;
  acceptor.assign(family == AF_INET6 ? tcp::v6() : tcp::v4(), descriptor, error);
  const auto endpoint = error ? tcp::endpoint() : acceptor.local_endpoint(error);
  if (error) return not_served(descriptor, error);
  impl_->tcp_acceptors.push_back({std::move(acceptor), listener.caller, listener.tls});
  return url_of(endpoint, listener.tls != nullptr);
}

base::Result<std::string> HttpServer::adopt_unix(int descriptor, const Caller& caller) {
  unix_stream::acceptor acceptor(impl_->context);
  error_code error;
  acceptor.assign(unix_stream(), descriptor, error);
  const auto endpoint = error ? unix_stream::endpoint() : acceptor.local_endpoint(error);
  if (error) return not_served(descriptor, error);
  impl_->unix_acceptors.push_back({std::move(acceptor), {}, caller});
  return "unix:" + endpoint.path();
}

base::Result<std::string> HttpServer::listen(const UnixListener& listener) {
  const std::filesystem::path& path = listener.path;
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);  // bind() reports the error
  error_code error;
  if (std::filesystem::is_socket(path, ignored)) {
    unix_stream::socket probe(impl_->context);
    probe.connect(unix_stream::endpoint(path.native()), error);
    if (!error) {
      return base::Error(std::make_error_code(std::errc::address_in_use),
                         fmt::format("cannot listen on {}: another process serves it", path.native()));
    }
    std::filesystem::remove(path, ignored);
    error = {};
  }
  const auto last_errno = [] { return error_code(errno, boost::system::system_category()); };
  unix_stream::acceptor acceptor(impl_->context);
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
  impl_->unix_acceptors.push_back({std::move(acceptor), path, listener.caller});
  return "unix:" + path.native();
}

void HttpServer::start(const HttpService& service) {
  for (const auto& worker : impl_->workers) worker->start(service);
  impl_->accepting = impl_->tcp_acceptors.size() + impl_->unix_acceptors.size();
  for (auto& each : impl_->tcp_acceptors) asio::co_spawn(impl_->context, impl_->accept(each), rethrow);
  for (auto& each : impl_->unix_acceptors) asio::co_spawn(impl_->context, impl_->accept(each), rethrow);
}

void HttpServer::set_limits(const HttpLimits& limits) {
  impl_->limits = limits;
  for (const auto& worker : impl_->workers) worker->set_limits(impl_->limits);
}

const HttpTotals& HttpServer::totals() const { return *impl_->totals; }

std::optional<base::WallTime> HttpServer::certificates_valid_until() const {
  std::optional<base::WallTime> first;
  for (const auto& each : impl_->tcp_acceptors) {
    if (each.tls) first = std::min(first.value_or(base::WallTime::max()), each.tls->valid_until());
  }
  return first;
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace spoor::daemon
