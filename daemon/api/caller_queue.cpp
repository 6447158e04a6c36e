#include "daemon/api/caller_queue.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "daemon/process/task.h"

namespace spoor::daemon {

CallerQueue::Place::Place(CallerQueue& queue, std::string caller)
    : queue_(queue), caller_(std::move(caller)) {
  auto& places = queue_.places_;
  const auto own = std::ranges::count(places, caller_, &Place::caller_);
  is_held_ = static_cast<std::size_t>(own) + places.size() < queue_.places_max_;
  if (is_held_) places.push_back(this);
}

CallerQueue::Place::~Place() {
  std::erase(queue_.places_, this);
  if (queue_.running_ != this) return;
  // The other requests of this caller wait until each other caller had a turn.
  std::vector<Place*> own;
  std::erase_if(queue_.places_, [&](Place* place) {
    if (place->caller_ == caller_) own.push_back(place);
    return place->caller_ == caller_;
  });
  queue_.places_.insert(queue_.places_.end(), own.begin(), own.end());
  queue_.running_ = nullptr;
  queue_.run_next();
}

boost::asio::awaitable<void> CallerQueue::Place::wait_for_turn() {
  boost::asio::steady_timer turn(co_await boost::asio::this_coro::executor,
                                 boost::asio::steady_timer::time_point::max());
  waiting_ = &turn;
  if (queue_.running_ == nullptr) queue_.run_next();
  if (queue_.running_ != this) co_await turn.async_wait(as_result);
  waiting_ = nullptr;
}

void CallerQueue::run_next() {
  const auto next =
      std::ranges::find_if(places_, [](const Place* place) { return place->waiting_ != nullptr; });
  if (next == places_.end()) return;
  running_ = *next;
  running_->waiting_->cancel();
}

}  // namespace spoor::daemon
