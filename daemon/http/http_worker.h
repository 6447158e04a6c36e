#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "daemon/http/http_message.h"
#include "daemon/http/http_session.h"

namespace spoor::daemon {

// Serves the connections of one thread, the one that runs `context`, which must outlive the worker.
// take(), set_limits() and stop() are thread-safe and asynchronous: they post the work to `context`.
class HttpWorker : public std::enable_shared_from_this<HttpWorker> {
 public:
  HttpWorker(boost::asio::io_context& context, const HttpLimits& limits, std::shared_ptr<HttpTotals> totals);

  boost::asio::io_context& context() { return context_; }

  // Before `context` runs, or on its thread.
  void start(const HttpService& service);

  // Serves a connection, or responds with status 503 if its place is not served. `tls`: none for a plain
  // connection.
  void take(std::unique_ptr<HttpPlace> place, HttpSession::Socket socket, Caller caller,
            std::shared_ptr<boost::asio::ssl::context> tls);

  // Affects later connections and requests only.
  void set_limits(const HttpLimits& limits);

  // After the last take(). Closes idle connections, and lets open requests finish (for at most grace_max).
  // Then calls `on_end`; `context` has no work left.
  void stop(std::function<void()> on_end);

  // Discards `on_end`. After `context` has run for the last time.
  void forget_stop() { sessions_->on_last_end = {}; }

 private:
  void admit(std::unique_ptr<HttpPlace> place, HttpSession::Socket socket, Caller caller,
             std::shared_ptr<boost::asio::ssl::context> tls);
  void sweep();
  void begin_stop(std::function<void()> on_end);
  void start_grace(std::chrono::milliseconds time);

  boost::asio::io_context& context_;
  const std::shared_ptr<HttpSessions> sessions_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer sweeping_;
};

}  // namespace spoor::daemon
