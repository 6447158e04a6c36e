#pragma once

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>

#include "daemon/http/http_message.h"
#include "daemon/http/http_session.h"
#include "daemon/http/tls.h"

namespace spoor::daemon {

// Logs that connections cannot be accepted, and that they can be again: each at most once a minute, even if
// the two alternate. Thread-safe.
class AcceptError {
 public:
  void failed(const boost::system::error_code& error);
  void over();

 private:
  using Clock = std::chrono::steady_clock;

  std::mutex mutex_;
  bool is_logged_ = false;
  std::optional<Clock::time_point> logged_at_;
};

// Accepts and serves connections on one thread, the one that runs `context`, which must outlive the worker.
// The workers of a server listen on the same sockets: the first that has time accepts a connection.
//
// set_limits() and stop() are thread-safe and asynchronous: they post the work to `context`. All else is
// called before `context` runs.
class HttpWorker : public std::enable_shared_from_this<HttpWorker> {
 public:
  // `limits` are its own, one of `workers`.
  HttpWorker(boost::asio::io_context& context, const HttpLimits& limits, std::size_t workers,
             std::shared_ptr<HttpTotals> totals, std::shared_ptr<AcceptError> accept_error);

  // Accepts from a duplicate of `socket`, which listens. `caller`: the initial one of each connection; `tls`:
  // none for plain connections.
  boost::system::error_code listen(int socket, const Caller& caller, std::shared_ptr<TlsServer> tls);

  void start(const HttpService& service);

  // Affects later connections and requests only.
  void set_limits(const HttpLimits& limits);

  // Accepts no more, closes idle connections, and lets open requests finish (for at most grace_max). Then
  // calls `on_end`; `context` has no work left.
  void stop(std::function<void()> on_end);

  // Discards `on_end`. After `context` has run for the last time.
  void forget_stop() { sessions_->on_last_end = {}; }

 private:
  // Of TCP or of a Unix socket.
  using Acceptor = boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol>;
  struct Listening {
    Acceptor acceptor;
    bool is_unix;
    Caller caller;
    std::shared_ptr<TlsServer> tls;
  };

  boost::asio::awaitable<void> accept(Listening& listening);
  boost::asio::awaitable<void> let_others_accept(const Listening& listening);
  std::size_t connections_max_of_all() const { return sessions_->limits.connections_max * workers_; }
  void admit(const Listening& listening, HttpSession::Socket socket);
  bool find_place(HttpPlace& place) const;
  void sweep();
  void end_sessions();
  void start_grace(std::chrono::milliseconds time);

  boost::asio::io_context& context_;
  const std::size_t workers_;
  const std::shared_ptr<HttpSessions> sessions_;
  const std::shared_ptr<AcceptError> accept_error_;
  std::list<Listening> listening_;
  std::size_t accepting_ = 0;  // how many accept() coroutines run
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer sweeping_;
};

}  // namespace spoor::daemon
