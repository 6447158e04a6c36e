#include "daemon/http/http_worker.h"

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/system/error_code.hpp>
#include <utility>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

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

void HttpWorker::take(std::unique_ptr<HttpPlace> place, HttpSession::Socket socket, Caller caller,
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

void HttpWorker::admit(std::unique_ptr<HttpPlace> place, HttpSession::Socket socket, Caller caller,
                       std::shared_ptr<asio::ssl::context> tls) {
  HttpTotals& totals = *sessions_->totals;
  const bool is_full = !place->is_served();
  ++(is_full ? totals.refused : totals.accepted);
  auto session = std::make_shared<HttpSession>(sessions_, std::move(place), std::move(socket),
                                               std::move(caller), std::move(tls));
  asio::co_spawn(context_, serve(std::move(session), is_full), rethrow);
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
