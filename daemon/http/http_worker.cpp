#include "daemon/http/http_worker.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using tcp = asio::ip::tcp;

constexpr std::chrono::milliseconds sweep_most{250};
constexpr std::chrono::milliseconds sweep_least{10};
constexpr std::chrono::milliseconds accept_pause{100};  // after an error: no file descriptors are left
constexpr std::chrono::milliseconds others_pause{10};   // how often others are asked for room
constexpr int others_pauses = 100;
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

// The address at the other end of a TCP connection; empty if the client has disconnected.
std::string address_of(const HttpSession::Socket& socket) {
  error_code error;
  const auto other_end = socket.remote_endpoint(error);
  if (error) return {};
  tcp::endpoint endpoint;
  endpoint.resize(other_end.size());
  std::memcpy(endpoint.data(), other_end.data(), other_end.size());
  return endpoint.address().to_string();
}

// Owns the session while it is served.
asio::awaitable<void> serve(std::shared_ptr<HttpSession> session, bool is_full) {
  if (is_full) {
    co_await session->refuse();
  } else {
    co_await session->run();
  }
}

}  // namespace

void AcceptError::failed(const error_code& error) {
  const std::scoped_lock lock(mutex_);
  const auto now = Clock::now();
  if (is_logged_ || (logged_at_ && now - *logged_at_ < complaint_pause)) return;
  is_logged_ = true;
  logged_at_ = now;
  spdlog::warn("cannot accept connections: {}; new connections wait until it succeeds", error.message());
}

void AcceptError::over() {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(is_logged_, false)) spdlog::info("connections are accepted again");
}

HttpWorker::HttpWorker(asio::io_context& context, const HttpLimits& limits, std::size_t workers,
                       std::shared_ptr<HttpTotals> totals, std::shared_ptr<AcceptError> accept_error)
    : context_(context),
      workers_(workers),
      sessions_(std::make_shared<HttpSessions>(std::move(totals))),
      accept_error_(std::move(accept_error)),
      grace_(context),
      sweeping_(context) {
  sessions_->limits = limits;
}

error_code HttpWorker::listen(int socket, const Caller& caller, std::shared_ptr<TlsServer> tls) {
  int family = AF_UNSPEC;
  socklen_t size = sizeof(family);
  ::getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size);
  const int own = ::fcntl(socket, F_DUPFD_CLOEXEC, 0);
  if (own < 0) return {errno, boost::system::system_category()};
  Acceptor acceptor(context_);
  error_code error;
  acceptor.assign({family, family == AF_UNIX ? 0 : IPPROTO_TCP}, own, error);
  if (!error) listening_.push_back({std::move(acceptor), family == AF_UNIX, caller, std::move(tls)});
  return error;
}

void HttpWorker::start(const HttpService& service) {
  sessions_->service = service;
  sweep();
  accepting_ = listening_.size();
  for (Listening& each : listening_) asio::co_spawn(context_, accept(each), rethrow);
}

asio::awaitable<void> HttpWorker::accept(Listening& listening) {
  const auto self = shared_from_this();
  asio::steady_timer pause(context_);
  while (listening.acceptor.is_open()) {
    co_await let_others_accept(listening);
    if (!listening.acceptor.is_open()) break;
    auto [error, socket] = co_await listening.acceptor.async_accept(as_result);
    if (error == asio::error::operation_aborted) break;
    if (error) {
      accept_error_->failed(error);
      pause.expires_after(accept_pause);
      co_await pause.async_wait(as_result);
      continue;
    }
    accept_error_->over();
    admit(listening, std::move(socket));
  }
  if (--accepting_ == 0) end_sessions();
}

// While this thread has its share and others do not, they accept. It would get most of the new connections
// otherwise, since none is refused as quickly as served. One that hangs is not waited for.
asio::awaitable<void> HttpWorker::let_others_accept(const Listening& listening) {
  asio::steady_timer pause(context_);
  for (int i = 0; i < others_pauses; ++i) {
    const bool has_share = sessions_->places.served() >= sessions_->limits.connections_max;
    if (!has_share || sessions_->totals->served >= connections_max_of_all()) co_return;
    if (!listening.acceptor.is_open()) co_return;
    pause.expires_after(others_pause);
    co_await pause.async_wait(as_result);
  }
}

void HttpWorker::admit(const Listening& listening, HttpSession::Socket socket) {
  Caller caller = listening.caller;
  if (listening.is_unix) {
    caller.unix_peer = peer_of(socket.native_handle());
  } else {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    caller.address = address_of(socket);
  }
  HttpTotals& totals = *sessions_->totals;
  auto place = std::make_unique<HttpPlace>(sessions_->places, caller, socket.native_handle());
  const bool is_closed = !find_place(*place);
  const bool is_full = !place->is_served();
  ++(is_full ? totals.refused : totals.accepted);
  if (is_closed) return;
  auto session =
      std::make_shared<HttpSession>(sessions_, std::move(place), std::move(socket), std::move(caller),
                                    listening.tls ? listening.tls->context() : nullptr);
  asio::co_spawn(context_, serve(std::move(session), is_full), rethrow);
}

// Returns false for a connection that is to be closed without a word: one beyond the limit still gets a
// response, unless too many do already, and none is evicted while too many that were have not ended.
bool HttpWorker::find_place(HttpPlace& place) const {
  const std::size_t refusals_max = connections_max_of_all() / ending_share + refusals_least;
  const std::size_t ending = sessions_->totals->ending();
  if (ending > 2 * refusals_max) return false;
  return place.serve(sessions_->limits.connections_max, sessions_->limits.yield_after) ||
         ending <= refusals_max;
}

void HttpWorker::set_limits(const HttpLimits& limits) {
  asio::dispatch(context_, [self = shared_from_this(), limits] { self->sessions_->limits = limits; });
}

// One timer for all sessions: a timer for each request would cost as much as handling the request.
void HttpWorker::sweep() {
  const auto shortest = std::min(sessions_->limits.idle_max, sessions_->limits.request_max);
  sweeping_.expires_after(std::clamp(shortest / 4, sweep_least, sweep_most));
  sweeping_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    const auto now = HttpSession::Clock::now();
    for (HttpSession* session : self->sessions_->all) session->expire(now);
    // The last session may have ended after this handler was queued.
    if (self->sessions_->stopping && self->sessions_->all.empty()) return;
    self->sweep();
  });
}

void HttpWorker::stop(std::function<void()> on_end) {
  asio::dispatch(context_, [self = shared_from_this(), on_end = std::move(on_end)] {
    self->sessions_->on_last_end = [self, on_end] {
      self->grace_.cancel();
      self->sweeping_.cancel();
      on_end();
    };
    error_code ignored;
    for (Listening& each : self->listening_) each.acceptor.close(ignored);
    if (self->accepting_ == 0) self->end_sessions();
  });
}

// After the last connection has been accepted.
void HttpWorker::end_sessions() {
  sessions_->stopping = true;
  if (sessions_->all.empty()) return sessions_->end();
  for (HttpSession* session : sessions_->all) session->stop();
  start_grace(sessions_->limits.grace_max);
}

void HttpWorker::start_grace(std::chrono::milliseconds time) {
  grace_.expires_after(time);
  grace_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error) return;
    for (HttpSession* session : self->sessions_->all) session->cancel();
    // A session that was between two operations begins the next one: cancel again later.
    if (!self->sessions_->all.empty()) self->start_grace(sweep_most);
  });
}

}  // namespace spoor::daemon
