#include "scanner/walk/pace.h"

#include <algorithm>

namespace spoor::scanner {
namespace {

// Shorter waits than this cost more than they save: a few directories are read ahead of their time.
constexpr std::chrono::milliseconds wait_min{10};

}  // namespace

void SystemWaiter::wait(base::SteadyTime until, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  stopped_.wait_until(lock, stop, until, [] { return false; });
}

Pace::Pace(std::uint64_t directories_per_second, const base::Clock& clock, Waiter& waiter)
    : clock_(clock), waiter_(waiter) {
  if (directories_per_second != 0) {
    const std::uint64_t rate = std::min<std::uint64_t>(directories_per_second, 1'000'000'000);
    interval_ = std::chrono::nanoseconds(1'000'000'000 / static_cast<std::int64_t>(rate));
  }
}

void Pace::wait_until_due(const std::stop_token& stop) {
  if (interval_.count() == 0) return;
  const base::SteadyTime now = clock_.steady_now();
  if (next_ < now) {
    next_ = now;
  } else if (next_ - now >= wait_min) {
    waiter_.wait(next_, stop);
  }
  next_ += interval_;
}

}  // namespace spoor::scanner
