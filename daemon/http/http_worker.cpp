#include "daemon/http/http_worker.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/system/error_code.hpp>
#include <limits>
#include <utility>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
constexpr std::chrono::milliseconds sweep_most{250};
constexpr std::chrono::milliseconds sweep_least{10};

// Owns the session while it is served.
asio::awaitable<void> serve(std::shared_ptr<HttpSession> session, bool is_full) {
  if (is_full) {
    co_await session->refuse();
  } else {
    co_await session->run();
  }
}

}  // namespace

HttpWorker::HttpWorker(asio::io_context& context, const HttpLimits& limits,
                       std::shared_ptr<HttpTotals> totals)
    : context_(context),
      sessions_(std::make_shared<HttpSessions>(std::move(totals))),
      grace_(context),
      sweeping_(context) {
  sessions_->limits = limits;
}

void HttpWorker::start(const HttpService& service) {
  sessions_->service = service;
  sweep();
}

void HttpWorker::take(HttpPlace place, HttpSession::Socket socket, Caller caller,
                      std::shared_ptr<asio::ssl::context> tls) {
  asio::dispatch(context_, [self = shared_from_this(), place = std::move(place), socket = std::move(socket),
                            caller = std::move(caller), tls = std::move(tls)]() mutable {
    self->admit(std::move(place), std::move(socket), std::move(caller), std::move(tls));
  });
}

void HttpWorker::set_limits(const HttpLimits& limits) {
  asio::dispatch(context_, [self = shared_from_this(), limits] { self->sessions_->limits = limits; });
}

void HttpWorker::stop(std::function<void()> on_end) {
  asio::dispatch(context_, [self = shared_from_this(), on_end = std::move(on_end)]() mutable {
    self->begin_stop(std::move(on_end));
  });
}

void HttpWorker::admit(HttpPlace place, HttpSession::Socket socket, Caller caller,
                       std::shared_ptr<asio::ssl::context> tls) {
  HttpTotals& totals = *sessions_->totals;
  const std::size_t most = sessions_->limits.connections_max;
  // An evicted connection still counts as served for a moment, so the limit does not apply to its successor.
  const bool is_full = !place.serve(most) && !(evict_idle_connection() && place.serve(no_limit));
  ++(is_full ? totals.refused : totals.accepted);
  if (is_full) ask_others_to_evict();
  auto session = std::make_shared<HttpSession>(sessions_, std::move(place), std::move(socket),
                                               std::move(caller), std::move(tls));
  asio::co_spawn(context_, serve(std::move(session), is_full), rethrow);
}

// Ends the connection that has been idle for the longest time, if that is at least yield_after. Clients that
// keep connections open without requests, or send their header byte by byte, must not block other clients.
bool HttpWorker::evict_idle_connection() {
  HttpSession* longest = nullptr;
  for (HttpSession* session : sessions_->all) {
    if (!session->waiting_since() || session->is_cancelled()) continue;
    if (longest == nullptr || *session->waiting_since() < *longest->waiting_since()) longest = session;
  }
  if (longest == nullptr) return false;
  if (HttpSession::Clock::now() - *longest->waiting_since() < sessions_->limits.yield_after) return false;
  longest->cancel();
  return true;
}

// Frees a place for a later connection: this one is refused without waiting for other threads. One eviction
// at a time, however many connections were refused.
void HttpWorker::ask_others_to_evict() {
  if (!sessions_->totals->wants_eviction.exchange(true)) pass_on(this);
}

void HttpWorker::pass_on(const HttpWorker* asking) {
  const auto next = next_.lock();
  if (!next || next.get() == asking) {
    sessions_->totals->wants_eviction = false;
    return;
  }
  asio::dispatch(next->context_, [next, asking] {
    const HttpSessions& sessions = *next->sessions_;
    if (sessions.totals->served >= sessions.limits.connections_max && !next->evict_idle_connection()) {
      next->pass_on(asking);
    } else {
      sessions.totals->wants_eviction = false;
    }
  });
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

void HttpWorker::begin_stop(std::function<void()> on_end) {
  sessions_->stopping = true;
  sessions_->on_last_end = [self = shared_from_this(), on_end = std::move(on_end)] {
    self->grace_.cancel();
    self->sweeping_.cancel();
    on_end();
  };
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
