// How fast a scan may go.
#pragma once

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
  void wait(base::SteadyTime until, const std::stop_token& stop) override;

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
  Pace(std::uint64_t directories_per_second, const base::Clock& clock, Waiter& waiter);

  bool is_unlimited() const { return interval_.count() == 0; }

  // Waits until the next directory may be read, or until a stop is requested.
  void wait_until_due(const std::stop_token& stop);

 private:
  const base::Clock& clock_;
  Waiter& waiter_;
  std::chrono::nanoseconds interval_{0};
  base::SteadyTime next_{};
};

}  // namespace spoor::scanner
