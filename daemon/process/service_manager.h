#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace spoor::daemon {

// Notifies systemd, or another service manager with sd_notify(3), of the state of this process. Sends nothing
// if NOTIFY_SOCKET is not set.
//
// The thread of `context` sends watchdog notifications (WATCHDOG_USEC) from serve() to stop(), each after the
// loops of all serving threads have run a handler: if one of them hangs, the watchdog expires. A disk or a
// peer that hangs does not matter, as other threads wait for them.
//
// Not thread-safe: used on the thread of `context`. The contexts must outlive it.
class ServiceManager {
 public:
  // `others`: the contexts of the other serving threads, which run until after stop().
  explicit ServiceManager(boost::asio::io_context& context,
                          std::vector<boost::asio::io_context*> others = {});

  // Sets the line that `systemctl status` shows. For use while `context` does not run.
  void notify_status(const std::string& status) const;

  // Reports READY as soon as `context` runs. Then calls status() every few seconds and reports changes.
  void serve(std::function<std::string()> status);

  // To be called before and after a reload.
  void reloading() const;
  void reloaded();

  // Reports that the stop has begun. Ends the coroutines, so that context.run() can return.
  void stop();

 private:
  boost::asio::awaitable<void> feed_watchdog();
  boost::asio::awaitable<void> report_status();

  boost::asio::io_context& context_;
  const std::vector<boost::asio::io_context*> others_;
  boost::asio::steady_timer watchdog_timer_;
  boost::asio::steady_timer status_timer_;
  const std::chrono::microseconds watchdog_period_;  // 0: no watchdog
  std::function<std::string()> status_;
  std::string last_status_;
  bool stopped_ = false;
};

}  // namespace spoor::daemon
