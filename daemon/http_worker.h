#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>

#include "daemon/http_message.h"
#include "daemon/http_session.h"

namespace spoor::daemon {

// The connections that one thread serves: `context` runs on it, and must outlive the worker. May be told from
// any thread, and does what it is told on its own.
class HttpWorker : public std::enable_shared_from_this<HttpWorker> {
 public:
  HttpWorker(boost::asio::io_context& context, const HttpLimits& limits, std::shared_ptr<HttpTotals> totals);

  boost::asio::io_context& context() { return context_; }

  // Before `context` runs, or on its thread.
  void start(const HttpService& service);

  // Serves a connection, or answers 503 where there are too many. `tls`: none for a plain one.
  void take(HttpPlace place, HttpSession::Socket socket, Caller caller,
            std::shared_ptr<boost::asio::ssl::context> tls);

  // Whom to ask for room where this one has none.
  void set_next(const std::shared_ptr<HttpWorker>& next) { next_ = next; }

  // For the connections and requests that come from now on.
  void set_limits(const HttpLimits& limits);

  // After the last take(): closes what is idle, and lets requests under way finish (for grace_max at most).
  // Then nothing is left to do for `context`, and `on_end` is called.
  void stop(std::function<void()> on_end);

  // Calls nobody when what is left ends. Once `context` has run for the last time.
  void forget_stop() { sessions_->on_last_end = {}; }

 private:
  void admit(HttpPlace place, HttpSession::Socket socket, Caller caller,
             std::shared_ptr<boost::asio::ssl::context> tls);
  bool make_room();
  void ask_others_for_room();
  void pass_on(const HttpWorker* asking);
  void sweep();
  void begin_stop(std::function<void()> on_end);
  void start_grace(std::chrono::milliseconds time);

  boost::asio::io_context& context_;
  std::weak_ptr<HttpWorker> next_;
  const std::shared_ptr<HttpSessions> sessions_;
  boost::asio::steady_timer grace_;
  boost::asio::steady_timer sweeping_;
};

}  // namespace spoor::daemon
