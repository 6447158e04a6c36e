#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>

namespace spoor::daemon {

// One wait at a time, on the thread of the io_context it was made for.
class Timer {
 public:
  virtual ~Timer() = default;
  Timer() = default;
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Returns whether the time passed; false after cancel().
  virtual boost::asio::awaitable<bool> wait(std::chrono::milliseconds time) = 0;

  // Ends the wait, if one is under way.
  virtual void cancel() = 0;
};

// Where the classes that wait and retry get their timers, so that tests move the time by hand.
class Timers {
 public:
  virtual ~Timers() = default;
  virtual std::unique_ptr<Timer> make() = 0;
};

// Timers of the steady clock. `context` must outlive them.
class SystemTimers final : public Timers {
 public:
  explicit SystemTimers(boost::asio::io_context& context) : context_(context) {}
  std::unique_ptr<Timer> make() override;

 private:
  boost::asio::io_context& context_;
};

}  // namespace spoor::daemon
