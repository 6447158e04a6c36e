#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

namespace spoor::tracker {

// A shared lock of several mutexes (stripes). A shared holder locks the stripe of the processor it runs on,
// so that threads on different processors share no cache line; an exclusive holder locks all stripes. A
// waiting exclusive holder has priority over later shared holders.
//
// `Local` is the data of one stripe: accessible to the holder of that stripe, and to the exclusive holder.
template <class Local>
class StripedSharedLock {
  struct alignas(64) Stripe {
    std::mutex mutex;
    Local local;
  };
  static constexpr std::size_t stripe_count = 16;

 public:
  // A thread that holds it and calls lock_exclusive() deadlocks.
  class SharedLock {
   public:
    Local& local() { return stripe_.local; }

   private:
    friend class StripedSharedLock;
    explicit SharedLock(Stripe& stripe) : stripe_(stripe), lock_(stripe.mutex) {}

    Stripe& stripe_;
    std::scoped_lock<std::mutex> lock_;
  };

  class ExclusiveLock {
   public:
    ExclusiveLock(const ExclusiveLock&) = delete;
    ExclusiveLock& operator=(const ExclusiveLock&) = delete;
    ~ExclusiveLock() {
      for (Stripe& stripe : owner_.stripes_) stripe.mutex.unlock();
      owner_.exclusive_waiters_.fetch_sub(1, std::memory_order_relaxed);
    }

    template <class Visit>
    void for_each_local(Visit visit) {
      for (Stripe& stripe : owner_.stripes_) visit(stripe.local);
    }

   private:
    friend class StripedSharedLock;
    explicit ExclusiveLock(StripedSharedLock& owner) : owner_(owner) {
      owner_.exclusive_waiters_.fetch_add(1, std::memory_order_relaxed);
      exclusive_ = std::unique_lock(owner_.exclusive_mutex_);
      for (Stripe& stripe : owner_.stripes_) stripe.mutex.lock();
    }

    StripedSharedLock& owner_;
    std::unique_lock<std::mutex> exclusive_;
  };

  SharedLock lock_shared() {
    // Without this wait an exclusive holder could starve: a mutex that is locked again at once is rarely free
    // when a sleeping thread wakes.
    if (exclusive_waiters_.load(std::memory_order_relaxed) != 0)
      const std::scoped_lock wait(exclusive_mutex_);
    const int processor = ::sched_getcpu();
    return SharedLock(stripes_[processor < 0 ? 0 : static_cast<std::size_t>(processor) % stripe_count]);
  }

  ExclusiveLock lock_exclusive() { return ExclusiveLock(*this); }

 private:
  std::atomic<unsigned> exclusive_waiters_ = 0;
  std::mutex exclusive_mutex_;  // one exclusive holder at a time
  std::array<Stripe, stripe_count> stripes_;
};

}  // namespace spoor::tracker
