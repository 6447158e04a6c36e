#include "daemon/process/timer.h"

#include <boost/asio/steady_timer.hpp>

#include "daemon/process/task.h"

namespace spoor::daemon {
namespace {

namespace asio = boost::asio;

class SystemTimer final : public Timer {
 public:
  explicit SystemTimer(asio::io_context& context) : timer_(context) {}

  asio::awaitable<bool> wait(std::chrono::milliseconds time) override {
    timer_.expires_after(time);
    const auto [cancelled] = co_await timer_.async_wait(as_result);
    co_return !cancelled;
  }

  void cancel() override { timer_.cancel(); }

 private:
  asio::steady_timer timer_;
};

}  // namespace

std::unique_ptr<Timer> SystemTimers::make() { return std::make_unique<SystemTimer>(context_); }

}  // namespace spoor::daemon
