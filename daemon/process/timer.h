#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>

#include "daemon/process/task.h"

namespace spoor::daemon {

// One wait at a time. Not thread-safe: used on the thread of its io_context.
class Timer {
 public:
  virtual ~Timer() = default;

  // Returns true when the time has passed, false after cancel().
  virtual boost::asio::awaitable<bool> wait(std::chrono::milliseconds time) = 0;

  // Ends the current wait, if any.
  virtual void cancel() = 0;
};

// Creates timers for classes that wait and retry. Tests implement it to control the time.
class Timers {
 public:
  virtual ~Timers() = default;
  virtual std::unique_ptr<Timer> make() = 0;
};

// Timers of the steady clock. `context` must outlive them.
class SystemTimers final : public Timers {
 public:
  explicit SystemTimers(boost::asio::io_context& context) : context_(context) {}
  std::unique_ptr<Timer> make() override { return std::make_unique<SystemTimer>(context_); }

 private:
  class SystemTimer final : public Timer {
   public:
    explicit SystemTimer(boost::asio::io_context& context) : timer_(context) {}

    boost::asio::awaitable<bool> wait(std::chrono::milliseconds time) override {
      timer_.expires_after(time);
      const auto [cancelled] = co_await timer_.async_wait(as_result);
      co_return !cancelled;
    }

    void cancel() override { timer_.cancel(); }

   private:
    boost::asio::steady_timer timer_;
  };

  boost::asio::io_context& context_;
};

}  // namespace spoor::daemon
