// How fast a scan may go.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>

#include "base/clock.h"

namespace spoor::scanner {

// Waiting, which tests replace.
class Waiter {
 public:
  virtual ~Waiter() = default;

  // Returns at `until`, or as soon as a stop is requested.
  virtual void wait(base::SteadyTime until, const std::stop_token& stop) = 0;
};

// Thread-safe.
class SystemWaiter final : public Waiter {
 public:
  void wait(base::SteadyTime until, const std::stop_token& stop) override {
    std::unique_lock lock(mutex_);
    stopped_.wait_until(lock, stop, until, [] { return false; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any stopped_;
};

// Spaces directories evenly. Unused time does not accumulate: a drive that was slow gets no burst once it is
// fast again.
//
// Not thread-safe.
class Pace {
 public:
  // 0 directories a second: no limit. `clock` and `waiter` must outlive the pace.
  Pace(std::uint64_t directories_per_second, const base::Clock& clock, Waiter& waiter)
      : clock_(clock), waiter_(waiter) {
    if (directories_per_second == 0) return;
    const std::uint64_t rate = std::min<std::uint64_t>(directories_per_second, 1'000'000'000);
    interval_ = std::chrono::nanoseconds(std::chrono::seconds(1)) / static_cast<std::int64_t>(rate);
  }

  bool is_unlimited() const { return interval_.count() == 0; }

  // Waits until the next directory may be read, or until a stop is requested.
  void wait_until_due(const std::stop_token& stop) {
    // Shorter waits than this cost more than they save: a few directories are read ahead of their time.
    constexpr std::chrono::milliseconds wait_min{10};
    if (is_unlimited()) return;
    const base::SteadyTime now = clock_.steady_now();
    if (next_ < now) {
      next_ = now;
    } else if (next_ - now >= wait_min) {
      waiter_.wait(next_, stop);
    }
    next_ += interval_;
  }

 private:
  const base::Clock& clock_;
  Waiter& waiter_;
  std::chrono::nanoseconds interval_{0};
  base::SteadyTime next_{};
};

}  // namespace spoor::scanner
