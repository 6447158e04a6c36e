// Timers that end when the test moves the clock, and settle(), which waits for everything else.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "daemon/process/timer.h"
#include "tests/fakes/manual_clock.h"

namespace spoor::fakes {

// Not thread-safe: used on the thread of `context`. Must outlive its timers.
class ManualTimers final : public daemon::Timers {
 public:
  ManualTimers(boost::asio::io_context& context, ManualClock& clock) : context_(context), clock_(clock) {}

  std::unique_ptr<daemon::Timer> make() override { return std::make_unique<ManualTimer>(*this); }

  // Time passes; the waits that are due end when the context runs next.
  void advance(std::chrono::nanoseconds by) {
    clock_.advance(by);
    for (ManualTimer* timer : timers_) timer->end_if_due();
  }

  // The remaining time of each current wait, shortest first.
  std::vector<std::chrono::milliseconds> waiting() const {
    std::multiset<std::chrono::milliseconds> left;
    for (const ManualTimer* timer : timers_) {
      if (const auto time = timer->left()) left.insert(*time);
    }
    return {left.begin(), left.end()};
  }

 private:
  class ManualTimer final : public daemon::Timer {
   public:
    explicit ManualTimer(ManualTimers& all)
        : all_(all), ended_(all.context_, boost::asio::steady_timer::time_point::max()) {
      all_.timers_.insert(this);
    }
    ~ManualTimer() override { all_.timers_.erase(this); }
    ManualTimer(const ManualTimer&) = delete;
    ManualTimer& operator=(const ManualTimer&) = delete;

    boost::asio::awaitable<bool> wait(std::chrono::milliseconds time) override {
      due_ = all_.clock_.steady_now() + time;
      has_passed_ = false;
      co_await ended_.async_wait(boost::asio::as_tuple(boost::asio::use_awaitable));
      due_.reset();
      co_return has_passed_;
    }

    void cancel() override {
      due_.reset();
      ended_.cancel();
    }

    void end_if_due() {
      if (!due_ || *due_ > all_.clock_.steady_now()) return;
      has_passed_ = true;
      cancel();
    }

    std::optional<std::chrono::milliseconds> left() const {
      if (!due_) return std::nullopt;
      return std::chrono::ceil<std::chrono::milliseconds>(*due_ - all_.clock_.steady_now());
    }

   private:
    ManualTimers& all_;
    boost::asio::steady_timer ended_;
    std::optional<base::SteadyTime> due_;  // during a wait
    bool has_passed_ = false;
  };

  boost::asio::io_context& context_;
  ManualClock& clock_;
  std::set<ManualTimer*> timers_;
};

// Posts itself to the end of the pool's queue `times` times, then sets `reached`.
inline void pass_through(boost::asio::thread_pool& pool, unsigned times, std::promise<void>& reached) {
  if (times == 0) return reached.set_value();
  boost::asio::post(pool, [&pool, times, &reached] { pass_through(pool, times - 1, reached); });
}

// Runs `context` and the pool, which must have one thread, until neither has work before time passes.
inline void settle(boost::asio::io_context& context, boost::asio::thread_pool& pool) {
  // A coroutine on the pool passes its queue more than once, at its start and at its end.
  constexpr unsigned times = 10;
  context.restart();
  do {
    std::promise<void> reached;
    pass_through(pool, times, reached);
    reached.get_future().wait();
  } while (context.poll() > 0);
}

}  // namespace spoor::fakes
