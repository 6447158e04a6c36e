#pragma once

#include <sched.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <utility>

namespace spoor::tracker {

// Lets many threads in side by side, and now and then one alone while all others stand still. Whoever
// enters takes the mutex of the processor it runs on, so that threads on different processors share no
// cache line; who wants to be alone takes all of them. One that waits for that is let in before those that
// came later.
//
// `Local` is what belongs to one of the mutexes: only who holds it, or is alone, may touch it.
template <class Local>
class MarkGate {
  struct alignas(64) Stripe {
    std::mutex mutex;
    Local local;
  };
  static constexpr std::size_t stripe_count = 16;

 public:
  // Inside, beside others. One that goes on to wait for being alone never gets there: leave first.
  class Entry {
   public:
    Local& local() { return stripe_.local; }

   private:
    friend class MarkGate;
    explicit Entry(Stripe& stripe) : stripe_(stripe), lock_(stripe.mutex) {}

    Stripe& stripe_;
    std::scoped_lock<std::mutex> lock_;
  };

  // Alone inside.
  class Solitude {
   public:
    Solitude(const Solitude&) = delete;
    Solitude& operator=(const Solitude&) = delete;
    ~Solitude() {
      for (Stripe& stripe : gate_.stripes_) stripe.mutex.unlock();
      gate_.wanted_alone_.fetch_sub(1, std::memory_order_relaxed);
    }

    template <class Visit>
    void for_each_local(Visit visit) {
      for (Stripe& stripe : gate_.stripes_) visit(stripe.local);
    }

   private:
    friend class MarkGate;
    explicit Solitude(MarkGate& gate) : gate_(gate) {
      gate_.wanted_alone_.fetch_add(1, std::memory_order_relaxed);
      turn_ = std::unique_lock(gate_.turn_);
      for (Stripe& stripe : gate_.stripes_) stripe.mutex.lock();
    }

    MarkGate& gate_;
    std::unique_lock<std::mutex> turn_;
  };

  Entry enter() {
    // Else who wants to be alone could starve: a mutex that is taken again at once is rarely free when a
    // sleeper wakes.
    if (wanted_alone_.load(std::memory_order_relaxed) != 0) const std::scoped_lock wait(turn_);
    const int processor = ::sched_getcpu();
    return Entry(stripes_[processor < 0 ? 0 : static_cast<std::size_t>(processor) % stripe_count]);
  }

  Solitude enter_alone() { return Solitude(*this); }

 private:
  std::atomic<unsigned> wanted_alone_ = 0;
  std::mutex turn_;  // of those that want to be alone
  std::array<Stripe, stripe_count> stripes_;
};

}  // namespace spoor::tracker
