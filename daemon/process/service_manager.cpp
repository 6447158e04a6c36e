#include "daemon/process/service_manager.h"

#include <fmt/core.h>
#include <spdlog/spdlog.h>
#include <systemd/sd-daemon.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdint>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "base/printable.h"
#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

constexpr std::chrono::seconds status_pause{2};

void notify(const std::string& state) {
  const int sent = ::sd_notify(0, state.c_str());
  if (sent >= 0) return;
  spdlog::warn("cannot notify the service manager ('{}'): {}", base::printable(state),
               std::generic_category().message(-sent));
}

// Without line breaks: a line break would begin another message.
std::string status_message(const std::string& status) { return "STATUS=" + base::printable(status); }

asio::awaitable<void> turn() { co_return; }

std::chrono::microseconds watchdog_period() {
  std::uint64_t period_us = 0;
  const int enabled = ::sd_watchdog_enabled(0, &period_us);
  if (enabled < 0) {
    spdlog::warn("no watchdog: WATCHDOG_USEC or WATCHDOG_PID is invalid: {}",
                 std::generic_category().message(-enabled));
  }
  return std::chrono::microseconds(enabled > 0 ? period_us : 0);
}

}  // namespace

ServiceManager::ServiceManager(asio::io_context& context, std::vector<asio::io_context*> others)
    : context_(context),
      others_(std::move(others)),
      watchdog_timer_(context),
      status_timer_(context),
      watchdog_period_(watchdog_period()) {}

void ServiceManager::notify_status(const std::string& status) const { notify(status_message(status)); }

void ServiceManager::serve(std::function<std::string()> status) {
  status_ = std::move(status);
  // Posted, so that READY is sent only when the loop runs and has started everything that was spawned before.
  asio::post(context_, [this] {
    if (stopped_) return;
    last_status_ = status_();
    notify("READY=1\n" + status_message(last_status_));
    if (watchdog_period_.count() > 0) asio::co_spawn(context_, feed_watchdog(), rethrow);
    if (std::getenv("NOTIFY_SOCKET") != nullptr) asio::co_spawn(context_, report_status(), rethrow);
  });
}

asio::awaitable<void> ServiceManager::feed_watchdog() {
  while (!stopped_) {
    for (asio::io_context* const other : others_) {
      co_await asio::co_spawn(*other, turn(), asio::use_awaitable);
      if (stopped_) co_return;  // the next context may have ended
    }
    notify("WATCHDOG=1");
    watchdog_timer_.expires_after(watchdog_period_ / 2);
    co_await watchdog_timer_.async_wait(as_result);
  }
}

asio::awaitable<void> ServiceManager::report_status() {
  while (!stopped_) {
    if (std::string status = status_(); status != last_status_) {
      last_status_ = std::move(status);
      notify_status(last_status_);
    }
    status_timer_.expires_after(status_pause);
    co_await status_timer_.async_wait(as_result);
  }
}

void ServiceManager::reloading() const {
  // systemd compares this with CLOCK_MONOTONIC, which is the steady clock.
  const auto now = std::chrono::floor<std::chrono::microseconds>(std::chrono::steady_clock::now());
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", now.time_since_epoch().count()));
}

void ServiceManager::reloaded() {
  last_status_ = status_();
  notify("READY=1\n" + status_message(last_status_));
}

void ServiceManager::stop() {
  stopped_ = true;
  watchdog_timer_.cancel();
  status_timer_.cancel();
  notify("STOPPING=1\nSTATUS=finishing open requests");
}

}  // namespace spoor::daemon
