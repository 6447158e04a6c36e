#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <optional>

#include "base/clock.h"
#include "tracker/snapshot_store.h"
#include "tracker/tracker.h"

namespace spoor::daemon {

// Saves the tracker's state: when asked, and every interval if something changed. A save that no
// drive took is tried again, with growing pauses; it counts only when it is durable.
//
// Lives on the thread of `context`; the writing itself is done on `pool`, and marking goes on
// meanwhile. One save at a time. All references must outlive it.
class Saver {
 public:
  Saver(boost::asio::io_context& context, boost::asio::thread_pool& pool, tracker::SnapshotStore& store,
        const tracker::Tracker& tracker, const base::Clock& clock, std::chrono::milliseconds interval);

  // Saves what is known when it begins, after a save that is under way.
  boost::asio::awaitable<tracker::SavedSnapshot> save();

  // Begins a save if something changed; does not wait for it.
  void save_soon();

  // Saves every interval, until stop().
  void start();
  void stop();

  // The last attempt, durable or not, and the last that was durable; nothing before the first.
  const std::optional<tracker::SavedSnapshot>& last() const { return last_; }
  const std::optional<tracker::SavedSnapshot>& last_durable() const { return last_durable_; }

  // For the saves at start and at the end, when nothing else runs: saves on the calling thread.
  const tracker::SavedSnapshot& save_here();

 private:
  boost::asio::awaitable<void> run();
  const tracker::SavedSnapshot& take(tracker::SavedSnapshot saved, std::uint64_t version);
  bool has_news() const;

  boost::asio::io_context& context_;
  boost::asio::thread_pool& pool_;
  tracker::SnapshotStore& store_;
  const tracker::Tracker& tracker_;
  const base::Clock& clock_;
  const std::chrono::milliseconds interval_;

  boost::asio::steady_timer timer_;     // ends the pause before the next save
  boost::asio::steady_timer finished_;  // cancelled whenever a save has finished
  bool running_ = false;
  bool stopped_ = false;
  bool soon_ = false;
  unsigned failures_ = 0;
  std::optional<std::uint64_t> saved_version_;
  std::optional<tracker::SavedSnapshot> last_;
  std::optional<tracker::SavedSnapshot> last_durable_;
};

}  // namespace spoor::daemon
