// The order in which requests of several callers run, one at a time.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <string>
#include <vector>

namespace spoor::daemon {

// A caller may hold as many places as are free, so that there is one for the next caller. The callers take
// turns, so that the many requests of one do not delay the few of another.
//
// Used on one thread; must outlive its places.
class CallerQueue {
 public:
  explicit CallerQueue(std::size_t places_max) : places_max_(places_max) {}

  // The place of one request, from its construction to its destruction.
  class Place {
   public:
    Place(CallerQueue& queue, std::string caller);
    ~Place();
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

    // False if there was none for this caller.
    bool is_held() const { return is_held_; }

    // Returns when it is the turn of this request, which ends with its place.
    boost::asio::awaitable<void> wait_for_turn();

   private:
    friend class CallerQueue;
    CallerQueue& queue_;
    const std::string caller_;
    bool is_held_ = false;
    boost::asio::steady_timer* waiting_ = nullptr;
  };

 private:
  void run_next();

  const std::size_t places_max_;
  std::vector<Place*> places_;  // all that are held, in the order of their turns
  Place* running_ = nullptr;
};

}  // namespace spoor::daemon
