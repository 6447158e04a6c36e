#include "daemon/http_server.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <type_traits>
#include <utility>
#include <vector>

#include "daemon/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;
using unix_stream = asio::local::stream_protocol;

constexpr auto as_result = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds accept_pause{100};  // when descriptors have run out
constexpr std::chrono::minutes complaint_pause{1};
constexpr std::size_t refusals_least = 16;  // at a time; each waits for its client to read the answer
constexpr std::chrono::milliseconds sweep_most{250};
constexpr std::chrono::milliseconds sweep_least{10};

// Who is at the other end; nobody where the kernel does not tell.
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

// Says that no connection can be accepted, and that it can be again: each once a minute at most, also where
// the two alternate.
class AcceptTrouble {
 public:
  void failed(const error_code& error) {
    const auto now = Clock::now();
    if (is_said_ || (said_at_ && now - *said_at_ < complaint_pause)) return;
    is_said_ = true;
    said_at_ = now;
    spdlog::warn("cannot accept connections: {}; new ones wait until it can be done again", error.message());
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
    std::filesystem::path file;  // empty: not ours to remove
  };

  Impl(asio::io_context& the_context, const Options& options)
      : context(the_context),
        sessions(std::make_shared<HttpSessions>()),
        grace(the_context),
        sweeping(the_context) {
    sessions->limits = options;
  }

  template <class Listening>
  asio::awaitable<void> accept(Listening& listening);
  static Caller caller_of(const TcpAcceptor& listening, tcp::socket& socket);
  static Caller caller_of(const UnixAcceptor& listening, unix_stream::socket& socket);
  void admit(HttpSession::Socket socket, Caller caller, std::shared_ptr<asio::ssl::context> tls);
  bool make_room();
  static asio::awaitable<void> serve(std::shared_ptr<HttpSession> session, bool is_full);
  void sweep();
  void start_grace(std::chrono::milliseconds time);
  void stop();

  asio::io_context& context;
  const std::shared_ptr<HttpSessions> sessions;
  std::vector<std::unique_ptr<TcpAcceptor>> tcp_acceptors;
  std::vector<std::unique_ptr<UnixAcceptor>> unix_acceptors;
  AcceptTrouble accept_trouble;
  asio::steady_timer grace;
  asio::steady_timer sweeping;
  std::uint64_t accepted = 0;  // connections that were served
  std::uint64_t refused = 0;
};

Caller HttpServer::Impl::caller_of(const TcpAcceptor& listening, tcp::socket& socket) {
  error_code ignored;
  socket.set_option(tcp::no_delay(true), ignored);
  return listening.caller;
}

Caller HttpServer::Impl::caller_of(const UnixAcceptor& /*listening*/, unix_stream::socket& socket) {
  return Caller{.unix_peer = peer_of(socket.native_handle())};
}

template <class Listening>
asio::awaitable<void> HttpServer::Impl::accept(Listening& listening) {
  const auto self = shared_from_this();
  asio::steady_timer pause(context);
  while (listening.acceptor.is_open()) {
    auto [error, socket] = co_await listening.acceptor.async_accept(as_result);
    if (error == asio::error::operation_aborted) co_return;
    if (error) {
      accept_trouble.failed(error);
      pause.expires_after(accept_pause);
      co_await pause.async_wait(as_result);
      continue;
    }
    accept_trouble.over();
    Caller caller = caller_of(listening, socket);
    std::shared_ptr<asio::ssl::context> tls;
    if constexpr (std::is_same_v<Listening, TcpAcceptor>) {
      if (listening.tls) tls = listening.tls->context();
    }
    admit(HttpSession::Socket(std::move(socket)), std::move(caller), std::move(tls));
  }
}

void HttpServer::Impl::admit(HttpSession::Socket socket, Caller caller,
                             std::shared_ptr<asio::ssl::context> tls) {
  const std::size_t most = sessions->limits.connections_max;
  const bool is_full = sessions->all.size() >= most && !make_room();
  ++(is_full ? refused : accepted);
  // Beyond the limit a connection still gets an answer, as long as there are not too many of these.
  if (sessions->all.size() >= most + most / 4 + refusals_least) return;
  auto session =
      std::make_shared<HttpSession>(sessions, std::move(socket), std::move(caller), std::move(tls));
  if (sessions->stopping) {  // accepted just before the stop
    start_grace(sessions->limits.grace_max);
    sweep();
  }
  asio::co_spawn(context, serve(std::move(session), is_full), rethrow);
}

// Ends the connection that has asked for nothing the longest; those who keep connections open for nothing, or
// send their header a byte at a time, must not keep out those who have something to say.
bool HttpServer::Impl::make_room() {
  HttpSession* longest = nullptr;
  for (HttpSession* session : sessions->all) {
    if (!session->waiting_since() || session->is_cancelled()) continue;
    if (longest == nullptr || *session->waiting_since() < *longest->waiting_since()) longest = session;
  }
  if (longest == nullptr) return false;
  if (HttpSession::Clock::now() - *longest->waiting_since() < sessions->limits.yield_after) return false;
  longest->cancel();
  return true;
}

// Holds the session while it is served.
asio::awaitable<void> HttpServer::Impl::serve(std::shared_ptr<HttpSession> session, bool is_full) {
  if (is_full) {
    co_await session->refuse();
  } else {
    co_await session->run();
  }
}

// One timer for all: a timer for each request would cost as much as answering it.
void HttpServer::Impl::sweep() {
  const auto shortest = std::min(sessions->limits.idle_max, sessions->limits.request_max);
  sweeping.expires_after(std::clamp(shortest / 4, sweep_least, sweep_most));
  sweeping.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    const auto now = HttpSession::Clock::now();
    for (HttpSession* session : self->sessions->all) session->expire(now);
    // The last one may have ended when this was on its way already.
    if (self->sessions->stopping && self->sessions->all.empty()) return;
    self->sweep();
  });
}

void HttpServer::Impl::stop() {
  if (std::exchange(sessions->stopping, true)) return;
  error_code ignored;
  for (const auto& each : tcp_acceptors) each->acceptor.close(ignored);
  for (const auto& each : unix_acceptors) {
    each->acceptor.close(ignored);
    std::error_code gone;
    if (!each->file.empty()) std::filesystem::remove(each->file, gone);
  }
  sessions->on_last_end = [self = shared_from_this()] {
    self->grace.cancel();
    self->sweeping.cancel();
  };
  if (sessions->all.empty()) return sessions->on_last_end();
  for (HttpSession* session : sessions->all) session->stop();
  start_grace(sessions->limits.grace_max);
}

void HttpServer::Impl::start_grace(std::chrono::milliseconds time) {
  grace.expires_after(time);
  grace.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    for (HttpSession* session : self->sessions->all) session->cancel();
    // Who was between two operations just then begins the next one.
    if (!self->sessions->all.empty()) self->start_grace(sweep_most);
  });
}

HttpServer::HttpServer(asio::io_context& context, Options options)
    : impl_(std::make_shared<Impl>(context, options)) {}

HttpServer::~HttpServer() { impl_->sessions->on_last_end = {}; }

base::Result<std::string> HttpServer::listen(const TcpListener& listener) {
  error_code error;
  const auto ip = asio::ip::make_address(listener.address, error);
  if (error) return base::Error(error, fmt::format("'{}' is no IP address", listener.address));
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
  impl_->tcp_acceptors.push_back(std::make_unique<Impl::TcpAcceptor>(
      Impl::TcpAcceptor{std::move(acceptor), listener.caller, listener.tls}));
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
  impl_->tcp_acceptors.push_back(std::make_unique<Impl::TcpAcceptor>(
      Impl::TcpAcceptor{std::move(acceptor), listener.caller, listener.tls}));
  return url_of(endpoint, listener.tls != nullptr);
}

base::Result<std::string> HttpServer::adopt_unix(int descriptor) {
  unix_stream::acceptor acceptor(impl_->context);
  error_code error;
  acceptor.assign(unix_stream(), descriptor, error);
  const auto endpoint = error ? unix_stream::endpoint() : acceptor.local_endpoint(error);
  if (error) return not_served(descriptor, error);
  impl_->unix_acceptors.push_back(
      std::make_unique<Impl::UnixAcceptor>(Impl::UnixAcceptor{std::move(acceptor), {}}));
  return "unix:" + endpoint.path();
}

base::Result<std::string> HttpServer::listen(const UnixListener& listener) {
  const std::filesystem::path& path = listener.path;
  std::error_code ignored;
  std::filesystem::create_directory(path.parent_path(), ignored);  // bind() tells what is wrong
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
  if (!error && listener.group && ::chown(path.c_str(), same_user, *listener.group) != 0)
    error = last_errno();
  if (!error && ::chmod(path.c_str(), listener.mode) != 0) error = last_errno();
  if (!error) acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error)
    return base::Error(error, fmt::format("cannot listen on {}: {}", path.native(), error.message()));
  impl_->unix_acceptors.push_back(
      std::make_unique<Impl::UnixAcceptor>(Impl::UnixAcceptor{std::move(acceptor), path}));
  return "unix:" + path.native();
}

void HttpServer::start(Handler handle, Admission admit) {
  impl_->sessions->service = {std::move(handle), std::move(admit)};
  for (const auto& each : impl_->tcp_acceptors) asio::co_spawn(impl_->context, impl_->accept(*each), rethrow);
  for (const auto& each : impl_->unix_acceptors)
    asio::co_spawn(impl_->context, impl_->accept(*each), rethrow);
  impl_->sweep();
}

void HttpServer::set_body_max(std::uint64_t bytes) { impl_->sessions->limits.body_bytes_max = bytes; }

void HttpServer::set_bodies_max(std::uint64_t bytes) { impl_->sessions->limits.bodies_bytes_max = bytes; }

void HttpServer::set_connections_max(std::size_t connections) {
  impl_->sessions->limits.connections_max = connections;
}

HttpServer::Figures HttpServer::figures() const {
  return {impl_->sessions->all.size(), impl_->accepted, impl_->refused, impl_->sessions->unread};
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace spoor::daemon
