#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace spoor::daemon {

// What systemd, or another that speaks sd_notify(3), is told of this process. Silent where nobody asked to be
// told (NOTIFY_SOCKET).
//
// The watchdog (WATCHDOG_USEC) is fed by the thread of `context`, from serve() to stop(), each time once the
// loops of all threads that serve have turned: one that hangs lets it run out. A disk or a peer that hangs
// does not: they are waited for on other threads.
//
// Lives on the thread of `context`. The contexts must outlive it.
class ServiceManager {
 public:
  // `others`: those of further threads, which run until after stop().
  explicit ServiceManager(boost::asio::io_context& context,
                          std::vector<boost::asio::io_context*> others = {});

  // The line that `systemctl status` shows. For the times when `context` does not run.
  void say(const std::string& status) const;

  // Once `context` runs: ready. Then looks every few seconds whether status() has changed.
  void serve(std::function<std::string()> status);

  // Around a reload.
  void reloading() const;
  void reloaded();

  // The stop has begun. Ends the feeding, so that context.run() can return.
  void stop();

 private:
  boost::asio::awaitable<void> feed_watchdog();
  boost::asio::awaitable<void> tell_status();

  boost::asio::io_context& context_;
  const std::vector<boost::asio::io_context*> others_;
  boost::asio::steady_timer feeding_;
  boost::asio::steady_timer telling_;
  const std::chrono::microseconds watchdog_period_;  // 0: there is none
  std::function<std::string()> status_;
  std::string told_;
  bool stopped_ = false;
};

}  // namespace spoor::daemon
